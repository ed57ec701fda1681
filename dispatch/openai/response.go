package openai

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// response takes the answer of /v1/responses, whose last event holds it as a whole.
type response struct {
	room   *room
	object []byte
}

func (p *response) add(event []byte) (tokens int, err error) {
	if string(event) == "[DONE]" { // some servers', not the API's
		return 0, nil
	}
	if p.object != nil {
		return 0, fmt.Errorf("%w: more came after its end", ErrUnjoined)
	}
	if !batchfile.IsObject(event) {
		return 0, fmt.Errorf("%w: an event is no JSON object", ErrUnjoined)
	}
	var kind, whole []byte
	for name, value := range batchfile.Members(event) {
		switch name {
		case "type":
			kind = value
		case "response":
			whole = value
		case "error":
			if string(value) != "null" {
				return 0, failure(event, value)
			}
		}
	}
	switch name := strings.Trim(string(kind), `"`); {
	case name == "error":
		return 0, failure(event, event)
	case name == "response.completed" || name == "response.incomplete" || name == "response.failed":
		if len(whole) == 0 || whole[0] != '{' {
			return 0, fmt.Errorf("%w: its last event holds no response", ErrUnjoined)
		}
		// it is copied once more at the end
		if err := p.room.add(2 * int64(len(whole))); err != nil {
			return 0, err
		}
		p.object = append(p.object, whole...)
	case strings.HasSuffix(name, ".delta"):
		return 1, nil
	}
	return 0, nil
}

func (p *response) whole(dst []byte) ([]byte, error) {
	if p.object == nil {
		return nil, errCut
	}
	return append(dst, p.object...), nil
}
