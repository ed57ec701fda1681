package batchfile

import "slices"

// AppendTurns returns a body with further messages at the end of its conversation. turns are the
// elements of a JSON list. False: the body has no conversation that can go on. Every other byte
// is unchanged.
func AppendTurns(body []byte, url string, turns []byte) ([]byte, bool) {
	member, ok := conversations[url]
	if !ok {
		return nil, false
	}
	var from, to, found int
	c := NewCursor(body)
	for o := c.Object(); o.Next(); {
		switch string(o.Key()) {
		case member:
			found++
			from = c.At()
			to = from + len(c.Skip())
		case "continue_final_message", "add_generation_prompt": // the answer continues the last one
			return nil, false
		}
	}
	if !c.End() || found != 1 {
		return nil, false
	}
	switch value := body[from:to]; {
	case value[0] == '"' && url == "/v1/responses": // short for a message of the user
		return slices.Concat(body[:from], []byte(`[{"role":"user","content":`), value,
			[]byte("},"), turns, []byte("]"), body[to:]), true
	case value[0] == '[' && !isEmptyList(value):
		return slices.Concat(body[:to-1], []byte(","), turns, body[to-1:]), true
	}
	return nil, false
}

// conversations names the members that hold the messages of a body, by endpoint.
var conversations = map[string]string{"/v1/chat/completions": fieldMessages.key(),
	"/v1/responses": fieldInput.key()}

func isEmptyList(value []byte) bool { return skipSpace(value, 1) == len(value)-1 }

// AppendTurn appends a message as an element of a JSON list to dst.
func AppendTurn(dst []byte, role, text string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"role":`...)
	dst = appendQuoted(dst, role)
	dst = append(dst, `,"content":`...)
	return append(appendQuoted(dst, text), '}')
}
