package batchfile

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// objectFault returns the fault in bytes that should be one object, as the functions for bytes in
// memory find it.
func objectFault(body []byte) (at int, err error) {
	i := skipSpace(body, 0)
	switch {
	case i == len(body):
		return i, errCut
	case body[i] != '{':
		return i, errNoObject
	}
	if i, err = skipValue(body, i, answerDepth); err != nil {
		return i, err
	}
	if i = skipSpace(body, i); i < len(body) {
		return i, errTrailing
	}
	return 0, nil
}

// checkObjectScanner compares a scan in random pieces with that of the same bytes in memory.
func checkObjectScanner(t *testing.T, seed uint64, body []byte, member string) {
	t.Helper()
	s := NewObjectScanner(member)
	err := inPieces(seed, body, s)
	if complete := err == nil && s.Complete(); complete != IsObject(body) {
		t.Fatalf("%.200q: complete: %v (%v), is an object: %v", body, complete, err,
			IsObject(body))
	}
	at, fault := s.json.finish(0)
	if wantAt, want := objectFault(body); fault != want || want != nil && at != wantAt {
		t.Fatalf("%.200q: byte %d: %v, want byte %d: %v", body, at+1, fault, wantAt+1, want)
	}
	if fault != nil || len(body) > maxKept {
		return
	}
	var want []byte
	eachMember(body, skipSpace(body, 0), func(key, value []byte) {
		if want == nil && string(key) == member {
			want = value
		}
	})
	if got := s.Value(); !bytes.Equal(got, want) {
		t.Fatalf("%.200q: %q is %q, want %q", body, member, got, want)
	}
	var keys, wantKeys []string
	for key := range Members(body) {
		wantKeys = append(wantKeys, key)
	}
	_, err = EditPieces(bytes.NewReader(body), nil, nil, func(key string) {
		keys = append(keys, key)
	})
	if err != nil || !slices.Equal(keys, wantKeys) {
		t.Fatalf("%.200q: keys %q (%v), want %q", body, keys, err, wantKeys)
	}
}

func TestObjectScanner(t *testing.T) {
	for i, body := range slices.Concat(bodies, largeBodies, seeds) {
		for seed := range uint64(4) {
			checkObjectScanner(t, uint64(i)<<8+seed, []byte(body), "usage")
		}
	}
}

func FuzzObjectScanner(f *testing.F) {
	for i, body := range slices.Concat(bodies, seeds) {
		f.Add(uint64(i), []byte(body), "usage")
	}
	f.Add(uint64(1), []byte(`{"":[ {"" : 1 } ],"":2}`), "")
	f.Fuzz(func(t *testing.T, seed uint64, body []byte, member string) {
		checkObjectScanner(t, seed, body, member)
	})
}

func TestObjectScannerKeepsNoMoreThanItsBound(t *testing.T) {
	for size, kept := range map[int]bool{maxKept: true, maxKept + 1: false} {
		value := `"` + strings.Repeat("v", size-len(`""`)) + `"`
		s := NewObjectScanner("usage")
		if err := inPieces(1, []byte(`{"usage": `+value+` ,"usage":{}}`), s); err != nil ||
			!s.Complete() {
			t.Fatalf("complete: %v, %v", s.Complete(), err)
		}
		if got := s.Value(); kept != (string(got) == value) || !kept && got != nil {
			t.Errorf("of %d bytes %d are kept, want them: %v", size, len(got), kept)
		}
	}
	const size = 12 << 20
	for name, body := range map[string]io.Reader{
		"one key": io.MultiReader(strings.NewReader(`{"`), repeated("k", size),
			strings.NewReader(`":1}`)),
		"one value": io.MultiReader(strings.NewReader(`{"usage":"`), repeated("v", size),
			strings.NewReader(`"}`)),
		"members": io.MultiReader(strings.NewReader(`{"usage":1`),
			repeated(`,"usage":2`, size/10*10), strings.NewReader(`}`)),
	} {
		buffer := make([]byte, 32<<10)
		used := allocated(func() {
			s := NewObjectScanner("usage")
			if _, err := io.CopyBuffer(s, struct{ io.Reader }{body}, buffer); err != nil ||
				!s.Complete() {
				t.Errorf("%s: complete: %v, %v", name, s.Complete(), err)
			}
		})
		if used > 256<<10 {
			t.Errorf("%s of %d MiB took %d KiB of memory, want less than 256", name, size>>20,
				used>>10)
		}
	}
}

func BenchmarkObjectScanner(b *testing.B) {
	numbers := []byte(`{"data":[` + strings.Repeat(`-0.012345678,`, 100_000) +
		`0],"usage":{"prompt_tokens":1}}`)
	b.SetBytes(int64(len(numbers)))
	for b.Loop() {
		s := NewObjectScanner("usage")
		for rest := numbers; len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			s.Write(rest[:min(len(rest), 32<<10)])
		}
		if !s.Complete() {
			b.Fatal("not complete")
		}
	}
}

// eachMember calls fn with the members of the object at b[i], with keys without quotes. It reports
// whether the object is valid.
func eachMember(b []byte, i int, fn func(key, value []byte)) bool {
	if i >= len(b) || b[i] != '{' {
		return false
	}
	c := Cursor{text: b, at: i, depth: answerDepth}
	for o := c.Object(); o.Next(); {
		fn(inside(o.key), c.Skip())
	}
	return c.err == nil
}
