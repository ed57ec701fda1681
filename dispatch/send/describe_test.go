package send

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// The message of a compressed answer names the cause, not its bytes.
func TestCompressedAnswersAreNamed(t *testing.T) {
	for body, want := range map[string]string{
		"\x1f\x8b\x08\x00secret":   "is compressed (gzip)",
		"\x28\xb5\x2f\xfd\x04\x00": "is compressed (zstd)",
		"<html>":                   `is not a JSON object; it was 6 bytes with status 200, beginning "<html>"`,
		"":                         "is not a JSON object",
	} {
		f := describe(nil, plan.Garbled, openai.Answer{Status: 200, Body: []byte(body)}, nil)
		if !strings.Contains(f.Message, want) || strings.Contains(f.Message, "secret") {
			t.Errorf("%q: %s, want %s", body, f.Message, want)
		}
	}
}
