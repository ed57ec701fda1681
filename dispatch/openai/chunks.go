package openai

import (
	"fmt"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// chatFields describes the members of a chat.completion.chunk, in the order of a chat.completion.
// The result equals the same server's answer without streaming, but for members that say nothing,
// such as nulls, and those that the server does not stream. The tests have pairs of both forms in
// testdata, and list all differences that they allow. refusal and logprobs, which the API requires,
// are null where no chunk has them.
var chatFields = []field{
	{name: "id"},
	{name: "object"},
	{name: "created", how: first}, // some servers stamp every chunk
	{name: "model"},
	{name: "choices", how: indexed, of: []field{
		{name: "index"},
		{name: "delta", as: "message", how: inner, of: []field{
			{name: "role", fallback: `"assistant"`},
			{name: "content", how: text, fallback: "null"},
			{name: "refusal", how: text, fallback: "null"},
			{name: "reasoning_content", how: text},
			{name: "reasoning", how: text},
			{name: "tool_calls", how: indexed, of: []field{
				{name: "index", how: dropped},
				{name: "id"},
				{name: "type"},
				{name: "function", how: inner, of: functionFields},
				{name: "custom", how: inner, of: []field{
					{name: "name"},
					{name: "input", how: text},
				}},
			}},
			{name: "function_call", how: inner, of: functionFields},
		}},
		{name: "logprobs", how: inner, fallback: "null", of: []field{
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

// completionFields describes the same for /v1/completions.
var completionFields = []field{
	{name: "id"},
	{name: "object"},
	{name: "created", how: first},
	{name: "model"},
	{name: "choices", how: indexed, of: []field{
		{name: "index"},
		{name: "text", how: text, fallback: `""`},
		{name: "logprobs", how: inner, fallback: "null", of: []field{
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

// chunks assembles the answer of chat and completions, whose events are pieces of it.
type chunks struct {
	joiner   *joiner
	usage    batchfile.Usage // as last reported
	hasUsage bool
	usages   int   // events that reported one
	ofAll    bool  // the last of them had no choices, so its usage counts all choices
	counted  int64 // tokens that the usage of chunks has counted so far
	ended    bool
	chunk    parsedChunk // the last one
}

func newChunks(fields []field, memory *streamMemory) *chunks {
	return &chunks{joiner: newJoiner(fields, memory)}
}

func (c *chunks) add(event []byte) (tokens int, err error) {
	if string(event) == "[DONE]" {
		c.ended = true
		return 0, nil
	}
	if c.ended {
		return 0, fmt.Errorf("%w: an event follows its end", ErrNotAssembled)
	}
	c.joiner.grew = false
	chunk := &c.chunk
	*chunk = parsedChunk{chunks: c, cursor: batchfile.NewCursor(event)}
	for o := chunk.cursor.Object(); o.Next(); {
		chunk.member(event, o.Key())
	}
	switch {
	case !chunk.cursor.End():
		return 0, errNoEvent
	case chunk.reported != nil:
		return 0, chunk.reported
	case chunk.err != nil:
		return 0, chunk.err
	}
	if chunk.hasUsage {
		c.usages++
		c.ofAll = !chunk.hasChoices
	}
	if !c.joiner.grew {
		return 0, nil
	}
	if u := chunk.usage; u.OutputTokens > c.counted && len(c.choices().items) == 1 {
		tokens, c.counted = int(u.OutputTokens-c.counted), u.OutputTokens
		return tokens, nil
	}
	return 1, nil
}

func (c *chunks) choices() *value { return c.joiner.root.member([]byte("choices")) }

// missing returns why a part of the answer is missing: the stream broke off or, if it did not, the
// server does not send that part.
func (c *chunks) missing() error {
	if c.ended {
		return fmt.Errorf("%w: a choice or its finish_reason is missing", ErrNotAssembled)
	}
	return errIncomplete
}

// finish returns the answer, or errIncomplete while some of it is missing.
func (c *chunks) finish(dst []byte) (assembled, error) {
	root, choices := &c.joiner.root, c.choices()
	if len(choices.items) == 0 {
		return assembled{}, c.missing()
	}
	for i := range choices.items {
		choice := &choices.items[i]
		if choice.index != i || !choice.member([]byte("finish_reason")).known {
			return assembled{}, c.missing()
		}
		if message := choice.member([]byte("delta")); message != nil && message.field.how == inner {
			if err := message.settle(); err != nil {
				return assembled{}, err
			}
			choice.moveUp(message, "hidden_states")
		}
	}
	if !root.member([]byte("usage")).known {
		return assembled{}, fmt.Errorf("%w: it reports no usage, though that was requested",
			ErrNotAssembled)
	}
	if len(choices.items) > 1 && c.usages > 1 && !c.ofAll {
		return assembled{}, fmt.Errorf("%w: the usage that it reports last may count one of %d "+
			"choices", ErrNotAssembled, len(choices.items))
	}
	if object := root.member([]byte("object")); string(object.raw) == `"chat.completion.chunk"` {
		object.raw = []byte(`"chat.completion"`)
	}
	answer := assembled{body: root.append(dst), usage: c.usage}
	if c.hasUsage {
		answer.texts = len(choices.items)
	}
	return answer, nil
}
