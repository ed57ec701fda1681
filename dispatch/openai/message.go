package openai

import (
	"fmt"
	"slices"
)

// settle sets an empty content to null if the message has something else: streams begin with an
// empty content before the server knows.
func (v *value) settle() error {
	if v.members == nil {
		*v = object(v.field) // no delta came: an empty message
		v.opened = true
	}
	content := v.member([]byte("content"))
	if calls := v.member([]byte("tool_calls")); calls.opened {
		for i := range calls.items {
			if calls.items[i].index != i {
				return fmt.Errorf("%w: tool call %d is missing", ErrNotAssembled, i)
			}
		}
	}
	if len(content.raw) > 0 || !content.opened {
		return nil
	}
	for _, other := range []string{"refusal", "reasoning_content", "reasoning", "tool_calls",
		"function_call"} {
		if m := v.member([]byte(other)); m.opened && (len(m.raw) > 0 || len(m.items) > 0 ||
			len(m.members) > 0) {
			content.opened, content.raw = false, []byte("null")
		}
	}
	return nil
}

// moveUp moves a member that no table names from a choice's message to the choice itself. SGLang
// streams hidden_states in the delta, and without streaming it answers with them in the choice.
func (v *value) moveUp(message *value, name string) {
	m := message.member([]byte(name))
	if m == nil || v.member([]byte(name)) != nil {
		return
	}
	moved := *m
	message.members = slices.DeleteFunc(message.members, func(of value) bool {
		return of.name == name
	})
	v.members = append(v.members, moved)
}
