package yamlfault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The decoder counts lines from 0 in some faults, from 1 in others, and has none in others.
func TestLines(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		// of the parser
		{"a: 1\nb: 2\nc:\nflow:\n  foo: [1, 2\nbar: 1\n", "5: did not find expected ',' or ']'"},
		{"a: 1\nflow:\n  foo: {a: 1\nbar: 1\n", "3: did not find expected ',' or '}'"},
		{"a: [1\nb: 2\n", "2: did not find expected ',' or ']'"},
		{"a: [\n", "1: did not find expected node content"},
		{"- a\nb: 1\n", "2: did not find expected '-' indicator"},
		{"a: 1\n b: 2\n", "2: mapping values are not allowed in this context"},
		{"x: 1\na: {b: 1}}\n", "2: did not find expected key"},
		{"x: 1\ny: !foo!bar 1\n", "2: found undefined tag handle"},
		{"%YAML 1.1\n%YAML 1.1\n---\na: 1\n", "2: found duplicate %YAML directive"},
		{"# x\n%YAML 3.0\n---\na: 1\n", "2: found incompatible YAML document"},
		{"a: 1\n...\nb: [1, 2\n", "3: did not find expected <document start>"},
		// of the scanner
		{"a: 1\nb: 2\n\tc: 3\n", "2: found a tab character that violates indentation"},
		{"a: 1\nb: \"x\n", "2: found unexpected end of stream"},
		{"\"x\n", "1: found unexpected end of stream"},
		{"a: 1\nb: @x\n", "2: found character that cannot start any token"},
		// without a line
		{"a: 1\nb: \x01\n", "2: control characters are not allowed"},
		{"a: 1\nb: 2\nc: \xff\n", "3: invalid leading UTF-8 octet"},
		{"a: 1\nb: *none\n", "2: unknown anchor 'none' referenced"},
		// of a decoded value
		{"a: 1\nb: x\n", "2: cannot unmarshal !!str `x` into int"},
	} {
		line, what := Of(decode(test.text), []byte(test.text))
		if got := fmt.Sprintf("%d: %s", line, what); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
	}
}

func decode(text string) error {
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var value map[string]yaml.Node
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			return errors.New("decoded")
		}
		if err != nil {
			return err
		}
		if b, has := value["b"]; has {
			var number int
			if err := b.Decode(&number); err != nil {
				first, _, _ := strings.Cut(err.(*yaml.TypeError).Errors[0], "\n")
				return errors.New(first)
			}
		}
	}
}
