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
	var kind, object, reported []byte
	var usage batchfile.Usage
	var hasUsage bool
	c := batchfile.NewCursor(event)
	for o := c.Object(); o.Next(); {
		start := c.At()
		switch string(o.Key()) {
		case "type":
			kind = c.Skip()
		case "response":
			if c.Kind() == '{' {
				usage, hasUsage = c.Answer()
				object = c.From(start)
			}
		case "error":
			if value := c.Skip(); reported == nil && string(value) != "null" {
				reported = value
			}
		}
	}
	switch name := strings.Trim(string(kind), `"`); {
	case !c.End():
		return 0, errNoEvent
	case reported != nil:
		return 0, errorOf(event, reported)
	case name == "error":
		return 0, errorOf(event, event)
	case name == "response.completed" || name == "response.incomplete" || name == "response.failed":
		if object == nil {
			return 0, fmt.Errorf("%w: its last event contains no response", ErrNotAssembled)
		}
		if err := p.memory.add(2 * int64(len(object))); err != nil { // it is copied once more
			return 0, err
		}
		p.answer.body = append(p.answer.body, object...)
		if hasUsage {
			p.answer.usage, p.answer.texts = usage, 1
		}
	case strings.HasSuffix(name, ".delta"):
		return 1, nil
	}
	return 0, nil
}

func (p *responses) finish(dst []byte) (assembled, error) {
	if p.answer.body == nil {
		return assembled{}, errIncomplete
	}
	p.answer.body = append(dst, p.answer.body...)
	return p.answer, nil
}
