package openai

import (
	"fmt"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// chatFields are the members of a chat.completion.chunk, in the order that a chat.completion has
// them. What they become is what the same server answers without streaming, with two liberties:
// members that it would have answered as null may be missing, and refusal and logprobs, which the
// API demands, stand there as null.
var chatFields = []field{
	{name: "id"},
	{name: "object"},
	{name: "created", how: first}, // some servers stamp every chunk
	{name: "model"},
	{name: "choices", how: indexed, of: []field{
		{name: "index"},
		{name: "delta", as: "message", how: inner, of: []field{
			{name: "role", otherwise: `"assistant"`},
			{name: "content", how: text, otherwise: "null"},
			{name: "refusal", how: text, otherwise: "null"},
			{name: "reasoning_content", how: text},
			{name: "reasoning", how: text},
			{name: "tool_calls", how: indexed, of: []field{
				{name: "index", how: dropped},
				{name: "id"},
				{name: "type"},
				{name: "function", how: inner, of: functionFields},
			}},
			{name: "function_call", how: inner, of: functionFields},
		}},
		{name: "logprobs", how: inner, otherwise: "null", of: []field{
			{name: "content", how: list},
			{name: "refusal", how: list},
		}},
		{name: "finish_reason", how: last},
		{name: "token_ids", how: list}, // vLLM's
	}},
	{name: "usage", how: last},
	{name: "obfuscation", how: dropped}, // padding against eavesdroppers
}

var functionFields = []field{
	{name: "name"},
	{name: "arguments", how: text},
}

// completionFields are the same for /v1/completions.
var completionFields = []field{
	{name: "id"},
	{name: "object"},
	{name: "created", how: first},
	{name: "model"},
	{name: "choices", how: indexed, of: []field{
		{name: "index"},
		{name: "text", how: text, otherwise: `""`},
		{name: "logprobs", how: inner, otherwise: "null", of: []field{
			{name: "text_offset", how: list},
			{name: "token_logprobs", how: list},
			{name: "tokens", how: list},
			{name: "top_logprobs", how: list},
		}},
		{name: "finish_reason", how: last},
		{name: "token_ids", how: list},
	}},
	{name: "usage", how: last},
	{name: "obfuscation", how: dropped},
}

// chunks puts the answer of a route together whose events are pieces of it: chat and completions.
type chunks struct {
	joiner  *joiner
	counted int64 // tokens that chunks' own usage has counted so far
	ended   bool
}

func newChunks(fields []field, in *room) *chunks { return &chunks{joiner: newJoiner(fields, in)} }

func (c *chunks) add(event []byte) (tokens int, err error) {
	if string(event) == "[DONE]" {
		c.ended = true
		return 0, nil
	}
	if c.ended {
		return 0, fmt.Errorf("%w: more came after its end", ErrUnjoined)
	}
	if !batchfile.IsObject(event) {
		return 0, fmt.Errorf("%w: an event is no JSON object", ErrUnjoined)
	}
	for name, value := range batchfile.Members(event) {
		switch {
		case name == "error" && string(value) != "null":
			return 0, failure(event, value)
		case name == "object" && string(value) == `"error"`: // vLLM's, before it had an envelope
			return 0, failure(event, event)
		}
	}
	if err := c.joiner.add(event); err != nil {
		return 0, err
	}
	if !c.joiner.grew {
		return 0, nil
	}
	tokens = 1
	if !c.joiner.root.member("usage").said { // as in most streams, until their end
		return tokens, nil
	}
	if usage, ok := batchfile.ReadUsage(event); ok && usage.OutputTokens > c.counted &&
		len(c.choices().items) == 1 {
		tokens, c.counted = int(usage.OutputTokens-c.counted), usage.OutputTokens
	}
	return tokens, nil
}

func (c *chunks) choices() *value { return c.joiner.root.member("choices") }

// whole is the answer, or errCut while some of it is still to come.
func (c *chunks) whole(dst []byte) ([]byte, error) {
	choices := c.choices()
	if len(choices.items) == 0 {
		return nil, errCut
	}
	for i := range choices.items {
		choice := &choices.items[i]
		if choice.index != i || !choice.member("finish_reason").said {
			return nil, errCut
		}
		if message := choice.member("delta"); message != nil && message.field.how == inner {
			if err := message.settle(); err != nil {
				return nil, err
			}
		}
	}
	if !c.joiner.root.member("usage").said {
		return nil, fmt.Errorf("%w: it tells no usage, though that was asked for", ErrUnjoined)
	}
	if object := c.joiner.root.member("object"); string(object.raw) == `"chat.completion.chunk"` {
		object.raw = []byte(`"chat.completion"`)
	}
	return c.joiner.root.append(dst), nil
}

// settle says null for a content that is empty because the message stands elsewhere: streams open
// with an empty one before anybody knows.
func (v *value) settle() error {
	if v.members == nil {
		*v = object(v.field) // no delta came at all: an empty message
		v.opened = true
	}
	content := v.member("content")
	if calls := v.member("tool_calls"); calls.opened {
		for i := range calls.items {
			if calls.items[i].index != i {
				return fmt.Errorf("%w: tool call %d is missing", ErrUnjoined, i)
			}
		}
	}
	if len(content.raw) > 0 || !content.opened {
		return nil
	}
	for _, elsewhere := range []string{"refusal", "reasoning_content", "reasoning", "tool_calls",
		"function_call"} {
		if m := v.member(elsewhere); m.opened && (len(m.raw) > 0 || len(m.items) > 0 ||
			len(m.members) > 0) {
			content.opened, content.raw = false, []byte("null")
		}
	}
	return nil
}
