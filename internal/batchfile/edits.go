package batchfile

import (
	"encoding/json"
	"fmt"
	"slices"
)

// edits holds the changes to the members of one body.
type edits struct {
	defaults, overrides map[string]json.RawMessage
	present             map[string]bool // the keys to edit that the body has
}

// check returns an error if a new value is not JSON.
func (e *edits) check() error {
	for _, values := range [...]map[string]json.RawMessage{e.defaults, e.overrides} {
		for name, value := range values {
			if !valid(value, maxDepth) {
				return fmt.Errorf("the new value of %q is not JSON", name)
			}
		}
	}
	return nil
}

// override returns the value that replaces that of a member, if one does, and records that the
// body has the member.
func (e *edits) override(name []byte) (value json.RawMessage, overridden bool) {
	value, overridden = e.overrides[string(name)]
	if _, known := e.defaults[string(name)]; known || overridden {
		e.present[string(name)] = true
	}
	return value, overridden
}

// appendMissing appends the new members that the body does not have, sorted by key. some reports
// whether a member precedes them.
func (e *edits) appendMissing(dst []byte, some bool) []byte {
	for _, name := range e.missing() {
		value, overridden := e.overrides[name]
		if !overridden {
			value = e.defaults[name]
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(appendQuoted(dst, name), ':')
		dst = append(dst, value...)
	}
	return dst
}

func (e *edits) missing() []string {
	var names []string
	for name, value := range e.overrides {
		if !e.present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	for name, value := range e.defaults {
		if _, overridden := e.overrides[name]; !overridden && !e.present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func isNull(value json.RawMessage) bool {
	i := skipSpace(value, 0)
	return i < len(value) && value[i] == 'n'
}
