package openai

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// repeated repeats a text.
type repeated struct {
	text string
	at   int
}

func (e *repeated) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// Streams that bring nothing end, and fail their line as answers that are too large do.
func TestEndlessStreamsEnd(t *testing.T) {
	for name, text := range map[string]string{
		"comments": ": still here\n\n", "empty rows": "\n",
		"events without content": "data: " + chatChunk(`{"index":0,"delta":{}}`) + "\n\n",
	} {
		_, _, err := joinedWithin(32<<10, "/v1/chat/completions", io.MultiReader(
			strings.NewReader("data: "+chatChunk(`{"index":0,"delta":{"content":"a"}}`)+"\n\n"),
			&repeated{text: text}), nil)
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v, want %v", name, err, errTooLarge)
		}
	}
}
