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

// TestCuts cuts a value with all kinds of tokens at every byte.
func TestCuts(t *testing.T) {
	value := []byte(
		` {"key":[true,false,null,-10.5e+3,0,"\u00e9\\n plain text, sixteen bytes and more \"",{}],"":{"k":[]}}`)
	for n := range value {
		if valid(value[:n], maxDepth) {
			t.Errorf("%q is valid", value[:n])
		}
	}
	if !valid(value, maxDepth) || !json.Valid(value) {
		t.Error("the complete value is not valid")
	}
}
