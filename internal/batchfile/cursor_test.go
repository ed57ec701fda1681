package batchfile

import (
	"bytes"
	"testing"
)

// walk reads a value member by member and element by element. It skips every third one, and reads
// every third twice.
func walk(c *Cursor, n *int) {
	switch *n++; *n % 3 {
	case 0:
		return
	case 1:
		before := *c
		c.Skip()
		if c.Err() == nil && !valid(c.From(before.At()), answerDepth) {
			panic("skipped what is no value")
		}
		*c = before
	}
	switch c.Kind() {
	case '{':
		for o := c.Object(); o.Next(); {
			walk(c, n)
		}
	case '[':
		for a := c.Array(); a.Next(); {
			walk(c, n)
		}
	default:
		c.Skip()
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := valid(text, answerDepth)
		for n := range 3 {
			c := NewCursor(text)
			begin := c.At()
			if walk(&c, &n); c.At() == begin {
				c.Skip()
			}
			if c.End() != want {
				t.Fatalf("walk of %q ended well: %v, want %v", text, c.End(), want)
			}
		}
		var got, members [][]byte
		c := NewCursor(text)
		for o := c.Object(); o.Next(); {
			key := o.Key()
			got = append(got, key, c.Skip())
		}
		if c.End() != IsObject(text) {
			t.Fatalf("%q is an object: %v, want %v", text, c.End(), IsObject(text))
		}
		if _, _, object, _ := ReadAnswer(text); object != IsObject(text) {
			t.Fatalf("ReadAnswer of %q: an object: %v, want %v", text, object, IsObject(text))
		}
		if !c.End() {
			return
		}
		for key, value := range Members(text) {
			members = append(members, []byte(key), value)
		}
		if !bytes.Equal(bytes.Join(got, []byte(",")), bytes.Join(members, []byte(","))) {
			t.Fatalf("%q has members %q, want %q", text, got, members)
		}
	})
}
