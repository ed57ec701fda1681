// Package csvlines turns the rows of a CSV file into lines of a batch input file, by a template of
// their bodies. It reads and writes streams, and holds one row and its line in memory.
package csvlines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Template says how a row becomes a line.
type Template struct {
	id     string // the column of the custom_id; empty: it is the number of the row
	pieces []piece
}

// piece is a part of a body: text of the template, and after it the cell of a column.
type piece struct {
	text   string
	column string // empty: none
	json   bool   // the cell is JSON; else text inside a string
}

const (
	begin, end = "{{", "}}"
	jsonSuffix = "|json"
)

// Parse reads a template: the column of the custom_id, and a body, which is a JSON object. In
// strings of the body, but for names of members, {{column}} stands for the text of a cell. A string
// that is no more than {{column|json}} stands for a cell as a JSON value.
func Parse(id string, body []byte) (*Template, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, fmt.Errorf("the body is not JSON: %w", err)
	}
	rest := compact.Bytes()
	if rest[0] != '{' {
		return nil, fmt.Errorf("the body is no JSON object")
	}
	t := &Template{id: strings.TrimSpace(id)}
	var text []byte
	for len(rest) > 0 {
		if rest[0] != '"' {
			text, rest = append(text, rest[0]), rest[1:]
			continue
		}
		n := stringLength(rest)
		literal := rest[:n]
		rest = rest[n:]
		var value string
		if err := json.Unmarshal(literal, &value); err != nil {
			return nil, err
		}
		if name := len(rest) > 0 && rest[0] == ':'; name || !strings.Contains(value, begin) {
			text = append(text, literal...)
			continue
		}
		var err error
		if text, err = t.addString(text, value); err != nil {
			return nil, err
		}
	}
	t.pieces = append(t.pieces, piece{text: string(text)})
	return t, nil
}

// stringLength returns the length of the JSON string at the beginning of valid JSON.
func stringLength(p []byte) int {
	for i := 1; ; i++ {
		switch p[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// addString adds a string that names columns, after text. It returns the text after the last.
func (t *Template) addString(text []byte, value string) ([]byte, error) {
	if name, is := strings.CutPrefix(value, begin); is {
		name, after, closed := strings.Cut(name, end)
		name, isJSON := strings.CutSuffix(strings.TrimSpace(name), jsonSuffix)
		if closed && after == "" && isJSON {
			return nil, t.add(text, name, true)
		}
	}
	text = append(text, '"')
	for {
		before, rest, more := strings.Cut(value, begin)
		text = appendText(text, before)
		if !more {
			return append(text, '"'), nil
		}
		name, after, closed := strings.Cut(rest, end)
		if !closed {
			return nil, fmt.Errorf("%q has %s without %s", value, begin, end)
		}
		if strings.HasSuffix(strings.TrimSpace(name), jsonSuffix) {
			return nil, fmt.Errorf("%q has more than %s%s%s: a JSON value is no part of a string; "+
				"leave out %s, or the rest", value, begin, name, end, jsonSuffix)
		}
		if err := t.add(text, name, false); err != nil {
			return nil, err
		}
		text, value = nil, after
	}
}

func (t *Template) add(text []byte, column string, isJSON bool) error {
	if column = strings.TrimSpace(column); column == "" {
		return fmt.Errorf("%s%s names no column", begin, end)
	}
	t.pieces = append(t.pieces, piece{string(text), column, isJSON})
	return nil
}

// appendText appends the inside of a JSON string.
func appendText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
