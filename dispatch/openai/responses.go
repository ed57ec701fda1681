package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// responses takes the answer of /v1/responses from its last event, which contains it. Not every
// server gives its last event all that it streamed before: vLLM's was empty, or had the last piece
// of the text only, and some gateways leave out the output. So what was streamed is counted, and an
// answer with less than that is none.
type responses struct {
	memory *streamMemory
	answer assembled
	seen   outputSize // the events so far
}

func (p *responses) add(event []byte) (tokens int, err error) {
	if string(event) == "[DONE]" { // not in the API, but some servers send it
		return 0, nil
	}
	if p.answer.body != nil {
		return 0, fmt.Errorf("%w: an event follows its end", ErrNotAssembled)
	}
	e, ok := parseResponseEvent(event)
	switch {
	case !ok:
		return 0, errNoEvent
	case e.reported != nil:
		return 0, errorOf(event, e.reported)
	case e.kind == "error":
		return 0, errorOf(event, event)
	case e.kind == "response.completed" || e.kind == "response.incomplete" ||
		e.kind == "response.failed":
		return 0, p.end(e)
	case e.kind == "response.output_item.done":
		p.seen.items++
	case strings.HasSuffix(e.kind, ".delta"):
		if slices.Contains(textDeltas, e.kind) {
			p.seen.characters += countCharacters(e.delta)
		}
		return 1, nil
	}
	return 0, nil
}

// textDeltas are the events whose delta is a part of a text of the output.
var textDeltas = []string{"response.output_text.delta", "response.refusal.delta",
	"response.reasoning_text.delta", "response.reasoning_summary_text.delta",
	"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}

// end takes the answer from the last event.
func (p *responses) end(e responseEvent) error {
	if e.object == nil {
		return fmt.Errorf("%w: its last event contains no response", ErrNotAssembled)
	}
	has := sizeOfOutput(e.object)
	lacks := has.characters < p.seen.characters || has.items == 0 && p.seen.items > 0
	if lacks && e.kind != "response.failed" { // a failure need not keep what came before it
		return fmt.Errorf("%w: %d items with %d characters were streamed, its last event has %d "+
			"with %d", ErrNotAssembled, p.seen.items, p.seen.characters, has.items, has.characters)
	}
	if err := p.memory.add(2 * int64(len(e.object))); err != nil { // it is copied once more
		return err
	}
	p.answer.body = append(p.answer.body, e.object...)
	if e.hasUsage {
		p.answer.usage, p.answer.texts = e.usage, 1
	}
	return nil
}

// responseEvent is a parsed event.
type responseEvent struct {
	kind     string
	object   []byte // the response, if it contains one
	usage    batchfile.Usage
	hasUsage bool
	delta    []byte // a string, as it is written
	reported []byte // the error, if it reports one
}

func parseResponseEvent(event []byte) (e responseEvent, ok bool) {
	c := batchfile.NewCursor(event)
	for o := c.Object(); o.Next(); {
		start := c.At()
		switch string(o.Key()) {
		case "type":
			e.kind = strings.Trim(string(c.Skip()), `"`)
		case "delta":
			e.delta = c.Skip()
		case "response":
			if e.object = nil; c.Kind() == '{' {
				e.usage, e.hasUsage, _ = c.Answer()
				e.object = c.From(start)
			}
		case "error":
			if value := c.Skip(); e.reported == nil && string(value) != "null" {
				e.reported = value
			}
		}
	}
	return e, c.End()
}

func (p *responses) finish(dst []byte) (assembled, error) {
	if p.answer.body == nil {
		return assembled{}, errIncomplete
	}
	p.answer.body = append(dst, p.answer.body...)
	return p.answer, nil
}
