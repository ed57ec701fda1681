package batchfile

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestStringBytes puts every byte at every place of a string that is long enough to be skipped in
// words.
func TestStringBytes(t *testing.T) {
	for at := range 40 {
		for c := range 256 {
			b := []byte(`"` + strings.Repeat("s", 40) + `"`)
			b[1+at] = byte(c)
			if got, want := valid(b, maxDepth), json.Valid(b); got != want {
				t.Errorf("valid(%q) = %v, want %v", b, got, want)
			}
			b[2+at] = 'n' // may follow a backslash
			if got, want := valid(b, maxDepth), json.Valid(b); got != want {
				t.Errorf("valid(%q) = %v, want %v", b, got, want)
			}
		}
	}
}

// TestCuts cuts a value that has everything at every byte.
func TestCuts(t *testing.T) {
	whole := []byte(
		` {"key":[true,false,null,-10.5e+3,0,"\u00e9\\n plain text, sixteen bytes and more \"",{}],"":{"k":[]}}`)
	for n := range whole {
		if valid(whole[:n], maxDepth) {
			t.Errorf("%q is valid", whole[:n])
		}
	}
	if !valid(whole, maxDepth) || !json.Valid(whole) {
		t.Error("the whole is not")
	}
}
