package batchfile

import (
	"encoding/json"
	"fmt"
)

// EditBody appends body, a JSON object, to dst with some of its members changed. Every other byte
// is unchanged.
//
// An override replaces the value of a member, in every occurrence if the key is repeated, or is
// added; null removes the member. A default is added if the body does not have the key and no
// override names it; null adds nothing. Added members come last, sorted by key, so that equal input
// gives equal bytes.
func EditBody(dst, body []byte, defaults, overrides map[string]json.RawMessage) ([]byte, error) {
	edited, err := editBody(dst, body, defaults, overrides)
	if err != nil {
		return dst, fmt.Errorf("edit body: %w", err)
	}
	return edited, nil
}

func editBody(dst, body []byte, defaults, overrides map[string]json.RawMessage) ([]byte, error) {
	i := skipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		return nil, errNoObject
	}
	e := edits{defaults, overrides, make(map[string]bool, len(defaults)+len(overrides))}
	if err := e.check(); err != nil {
		return nil, err
	}
	dst = append(dst, body[:i+1]...)
	some := false // a member was kept
	m := membersAt(body, i)
	for from := i + 1; ; { // the first byte of a member, with the white space before it
		key, more, err := m.next()
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		if !more {
			break
		}
		start := m.at
		if m.at, err = skipValue(body, start, maxDepth-1); err != nil {
			return nil, fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		next := skipSpace(body, m.at)
		override, overridden := e.override(textOf(key.of(body), new([32]byte)[:0]))
		if !overridden || !isNull(override) {
			if some {
				dst = append(dst, ',')
			}
			some = true
			if overridden {
				dst = append(dst, body[from:start]...)
				dst = append(dst, override...)
				dst = append(dst, body[m.at:next]...)
			} else {
				dst = append(dst, body[from:next]...)
			}
		}
		from = next + 1
	}
	if end := skipSpace(body, m.at); end < len(body) {
		return nil, fmt.Errorf("byte %d: %w", end+1, errTrailing)
	}
	dst = append(e.appendMissing(dst, some), '}')
	return append(dst, body[m.at:]...), nil
}
