package batchfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// EditBody appends body, a JSON object, to dst with some of its members changed; every other byte stays as it is.
//
// An override takes the place of the member's value, of every occurrence if the key is repeated, or is added; null
// removes the member. A default is added if the body does not have the key and no override names it; null adds nothing.
// What is added comes last, sorted by key, so that equal input gives equal bytes.
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
		return nil, errors.New("not a JSON object")
	}
	if err := checkEdits(defaults, overrides); err != nil {
		return nil, err
	}
	present := make(map[string]bool, len(defaults)+len(overrides)) // of the keys to edit
	dst = append(dst, body[:i+1]...)
	empty := true
	m := membersAt(body, i)
	for from := i + 1; ; { // the first byte of a member, with the white space before it
		key, more, err := m.next()
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		if !more {
			break
		}
		name := textOf(key.of(body), new([32]byte)[:0])
		start := m.at
		if m.at, err = skipValue(body, start, maxDepth-1); err != nil {
			return nil, fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		override, overridden := overrides[string(name)]
		if _, known := defaults[string(name)]; known || overridden {
			present[string(name)] = true
		}
		next := skipSpace(body, m.at)
		if !overridden || !isNull(override) {
			if !empty {
				dst = append(dst, ',')
			}
			empty = false
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
	for _, name := range additions(defaults, overrides, present) {
		value, overridden := overrides[name]
		if !overridden {
			value = defaults[name]
		}
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(appendQuoted(dst, name), ':')
		dst = append(dst, value...)
	}
	dst = append(dst, '}')
	return append(dst, body[m.at:]...), nil
}

// additions returns, sorted, the keys to add to a body that has those present.
func additions(defaults, overrides map[string]json.RawMessage, present map[string]bool) []string {
	var names []string
	for name, value := range overrides {
		if !present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	for name, value := range defaults {
		if _, overridden := overrides[name]; !overridden && !present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func checkEdits(edits ...map[string]json.RawMessage) error {
	for _, edit := range edits {
		for name, value := range edit {
			if !valid(value, maxDepth) {
				return fmt.Errorf("the new value of %q is not JSON", name)
			}
		}
	}
	return nil
}

func isNull(value json.RawMessage) bool {
	i := skipSpace(value, 0)
	return i < len(value) && value[i] == 'n'
}
