package openai

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// responses takes the answer of /v1/responses from its last event, which contains it.
type responses struct {
	memory *streamMemory
	answer assembled
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
	case strings.HasSuffix(e.kind, ".delta"):
		return 1, nil
	}
	return 0, nil
}

// end takes the answer from the last event.
func (p *responses) end(e responseEvent) error {
	if e.object == nil {
		return fmt.Errorf("%w: its last event contains no response", ErrNotAssembled)
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
	reported []byte // the error, if it reports one
}

func parseResponseEvent(event []byte) (e responseEvent, ok bool) {
	c := batchfile.NewCursor(event)
	for o := c.Object(); o.Next(); {
		start := c.At()
		switch string(o.Key()) {
		case "type":
			e.kind = strings.Trim(string(c.Skip()), `"`)
		case "response":
			if e.object = nil; c.Kind() == '{' {
				e.usage, e.hasUsage = c.Answer()
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
