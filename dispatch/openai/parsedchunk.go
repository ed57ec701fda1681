package openai

import (
	"fmt"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// parsedChunk is an event of chunks while it is parsed. Whether it is an error, or no JSON, counts
// for more than that its members can't be joined, so it is always parsed to its end.
type parsedChunk struct {
	chunks   *chunks
	cursor   batchfile.Cursor
	usage    batchfile.Usage // that this event reports
	reported error           // that the server reports in it
	err      error           // why it can't be joined

	hasUsage, hasChoices bool
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
	case string(key) == "choices":
		p.hasChoices = string(value) != "[]"
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
		c.usage, c.hasUsage, p.hasUsage = usage, ok, true
	}
	return j.addLeaf(v, piece)
}
