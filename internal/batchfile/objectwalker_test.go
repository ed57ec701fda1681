package batchfile

import (
	"fmt"
	"strings"
	"testing"
)

// walked notes what an ObjectWalker reports.
type walked struct{ rows []string }

func (w *walked) Begin(depth int, key []byte, first byte, at int) {
	w.rows = append(w.rows, fmt.Sprintf("%d %s %c %d", depth, key, first, at))
}

func (w *walked) End(depth, at int) { w.rows = append(w.rows, fmt.Sprintf("%d end %d", depth, at)) }

func TestObjectWalker(t *testing.T) {
	const text = ` {"mod\u0065l":"a","x":{"model":[1,{"y":2}]},"n":-1.5e3}`
	want := []string{"0  { 1", "1 model \" 15", "1 end 18", "1 x { 23", "2 model [ 32",
		"2 end 43", "1 end 44", "1 n - 49", "1 end 55", "0 end 56"}
	for size := 1; size <= len(text); size++ {
		got := &walked{}
		w := NewObjectWalker(got, 2, 8)
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.rows) != fmt.Sprint(want) {
			t.Fatalf("pieces of %d: got\n%s\nwant\n%s", size, strings.Join(got.rows, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

func TestObjectWalkerFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1`:       "byte 7: the body ends before the object does",
		`{"a":1}x`:     "byte 8: more follows the object",
		`[1]`:          "byte 1: not a JSON object",
		``:             "byte 1: the body ends before the object does",
		`{"a":[[[]]]}`: "byte 8: nested too deep",
	} {
		w := NewObjectWalker(&walked{}, 1, 3)
		_, err := w.Write([]byte(text))
		if err == nil {
			err = w.Finish()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
