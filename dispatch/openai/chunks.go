package openai

import (
	"fmt"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// chatFields describes the members of a chat.completion.chunk, in the order of a chat.completion.
// The result equals the same server's answer without streaming, with two exceptions: members that
// would be null may be missing, and refusal and logprobs, which the API requires, are null.
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
	case !c.joiner.grew:
		return 0, nil
	}
	if u := chunk.usage; u.OutputTokens > c.counted && len(c.choices().items) == 1 {
		tokens, c.counted = int(u.OutputTokens-c.counted), u.OutputTokens
		return tokens, nil
	}
	return 1, nil
}

// parsedChunk is an event of chunks while it is parsed. Whether it is an error, or no JSON, counts
// for more than that its members can't be joined, so it is always parsed to its end.
type parsedChunk struct {
	chunks   *chunks
	cursor   batchfile.Cursor
	usage    batchfile.Usage // that this event reports
	reported error           // that the server reports in it
	err      error           // why it can't be joined
}

// member joins the member whose value is at the cursor.
func (p *parsedChunk) member(event, key []byte) {
	start := p.cursor
	if p.err == nil {
		if p.err = p.join(key); p.err != nil {
			p.err = fmt.Errorf("%s: %w", key, p.err)
			p.cursor = start
		}
	}
	if p.err != nil {
		p.cursor.Skip()
	}
	if p.reported != nil || p.cursor.Err() != nil {
		return
	}
	switch value := p.cursor.From(start.At()); {
	case string(key) == "error" && string(value) != "null":
		p.reported = errorOf(event, value)
	case string(key) == "object" && string(value) == `"error"`: // older vLLM
		p.reported = errorOf(event, event)
	}
}

func (p *parsedChunk) join(key []byte) error {
	c, j := p.chunks, p.chunks.joiner
	v, err := j.member(&j.root, key)
	if err != nil || string(key) != "usage" {
		if err == nil {
			err = j.addValue(v, &p.cursor, 0)
		}
		return err
	}
	start, kind := p.cursor.At(), p.cursor.Kind()
	usage, ok := p.cursor.Usage()
	if p.cursor.Err() != nil {
		return errNoEvent
	}
	piece := p.cursor.From(start)
	if p.usage = usage; kind != 'n' && string(piece) != `""` {
		c.usage, c.hasUsage = usage, ok
	}
	return j.addLeaf(v, piece)
}

func (c *chunks) choices() *value { return c.joiner.root.member([]byte("choices")) }

// finish returns the answer, or errIncomplete while some of it is missing.
func (c *chunks) finish(dst []byte) (assembled, error) {
	root, choices := &c.joiner.root, c.choices()
	if len(choices.items) == 0 {
		return assembled{}, errIncomplete
	}
	for i := range choices.items {
		choice := &choices.items[i]
		if choice.index != i || !choice.member([]byte("finish_reason")).known {
			return assembled{}, errIncomplete
		}
		if message := choice.member([]byte("delta")); message != nil && message.field.how == inner {
			if err := message.settle(); err != nil {
				return assembled{}, err
			}
		}
	}
	if !root.member([]byte("usage")).known {
		return assembled{}, fmt.Errorf("%w: it reports no usage, though that was requested",
			ErrNotAssembled)
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
