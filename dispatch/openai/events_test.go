package openai

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readEvents(from io.Reader, limit int64) (all []string, err error) {
	e := newEvents(from, &streamMemory{limit: limit})
	for {
		data, err := e.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"plain":                {"data: a\n\ndata: b\n\n", []string{"a", "b"}},
		"no space, two spaces": {"data:a\n\ndata:  b\n\n", []string{"a", " b"}},
		"lines of all kinds": {"data: a\r\n\r\ndata: b\r\rdata: c\n\r\n",
			[]string{"a", "b", "c"}},
		"several lines of data": {"data: {\ndata: }\n\n", []string{"{\n}"}},
		"comments, other fields": {": ping\n\nevent: x\nid: 7\ndata: a\nretry: 3\n\n:\n\n",
			[]string{"a"}},
		"empty data":            {"data\n\ndata:\n\n", []string{"", ""}},
		"byte order mark":       {"\uFEFFdata: a\n\n", []string{"a"}},
		"no blank line at last": {"data: a\n\ndata: [DONE]\n", []string{"a", "[DONE]"}},
		"not even a line's end": {"data: a\n\ndata: [DONE]", []string{"a", "[DONE]"}},
		"nothing":               {"", nil},
		"longer than the buffer": {"data: " + strings.Repeat("x", 10_000) + "\n\n", []string{
			strings.Repeat("x", 10_000)}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, from := range map[string]io.Reader{
				"at once": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(
					strings.NewReader(c.stream)),
			} {
				if got, err := readEvents(from, 1<<20); err != io.EOF || !slices.Equal(
					got, c.want) {
					t.Errorf("%s: got %q, %v; want %q", way, got, err, c.want)
				}
			}
		})
	}
}

func TestEndlessEvent(t *testing.T) {
	for _, line := range []string{"data: x\n", "data: x", "x"} {
		_, err := readEvents(&repeating{s: line}, 10_000)
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%q without end: got %v, want %v", line, err, errTooLarge)
		}
	}
}

// repeating has no end.
type repeating struct{ s, rest string }

func (r *repeating) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.s
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// How the bytes are cut into reads must not matter, and no input may hang or break the reader.
func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\ndata: b\r\rdata: c\n\n")
	f.Add(":x\ndata\ndata:\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		whole, first := readEvents(strings.NewReader(stream), 1000)
		pieces, second := readEvents(iotest.OneByteReader(strings.NewReader(stream)), 1000)
		if !slices.Equal(whole, pieces) || errors.Is(first, errTooLarge) != errors.Is(second,
			errTooLarge) {
			t.Errorf("%q: at once %q, %v; byte by byte %q, %v", stream, whole, first, pieces,
				second)
		}
	})
}
