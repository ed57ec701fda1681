package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// decode returns an object whose numbers stay as they are written.
func decode(t rapid.TB, text string) (object map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return object
}

func number(t rapid.TB, v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		t.Fatalf("%v is no number", v)
	}
	f, err := n.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// meaning returns a copy of an answer in which all forms that mean the same are one form. These
// are all the differences that are allowed between a joined answer and a plain one:
//
//   - A member that is null may be missing. Servers write nulls in one form and leave them out in
//     the other.
//   - tool_calls and annotations without elements may be missing: streams bring an element or none.
//   - The content of a message that has something else may be null or empty. OpenAI and vLLM answer
//     null, SGLang an empty string, and their streams do not differ.
//   - A tool call need not have its index, which is its position. SGLang's plain answers have it.
//   - The list of log probabilities of a content or a refusal that has none may be null or empty:
//     OpenAI streams an empty list of content before it knows that it will refuse.
//
// Answers of responses come as a whole in both forms, so none of this is allowed there.
func meaning(answer map[string]any) map[string]any {
	if _, ok := answer["choices"]; !ok {
		return clone(answer, false).(map[string]any)
	}
	answer = clone(answer, true).(map[string]any)
	choices, _ := answer["choices"].([]any)
	for _, choice := range choices {
		choice := choice.(map[string]any)
		if message, ok := choice["message"].(map[string]any); ok {
			settleMessage(message)
			if logprobs, ok := choice["logprobs"].(map[string]any); ok {
				dropEmpty(logprobs, "content", "refusal")
			}
		}
	}
	return answer
}

func settleMessage(message map[string]any) {
	dropEmpty(message, "tool_calls", "annotations")
	calls, _ := message["tool_calls"].([]any)
	for _, call := range calls {
		delete(call.(map[string]any), "index")
	}
	if message["content"] != "" {
		return
	}
	for _, other := range []string{"refusal", "reasoning", "reasoning_content", "tool_calls",
		"function_call"} {
		if message[other] != nil {
			delete(message, "content")
		}
	}
}

func dropEmpty(object map[string]any, names ...string) {
	for _, name := range names {
		if list, ok := object[name].([]any); ok && len(list) == 0 {
			delete(object, name)
		}
	}
}

// clone copies a value, without the members that are null if those are to be dropped.
func clone(v any, dropNulls bool) any {
	switch v := v.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for name, member := range v {
			if member != nil || !dropNulls {
				made[name] = clone(member, dropNulls)
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, element := range v {
			made[i] = clone(element, dropNulls)
		}
		return made
	}
	return v
}

// take removes the member at a path such as choices.0.matched_stop, and returns it.
func take(answer map[string]any, path string) any {
	names := strings.Split(path, ".")
	var at any = answer
	for _, name := range names[:len(names)-1] {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			at = v[i]
		}
	}
	object, _ := at.(map[string]any)
	last := names[len(names)-1]
	taken := object[last]
	delete(object, last)
	return taken
}
