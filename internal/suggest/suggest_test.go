package suggest_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"deadline", "model", "n", "priority", "max_tokens"}
	for name, want := range map[string]string{
		"priorty":                 "priority", // a letter is missing
		"Priority":                "priority", // another case
		"maxtokens":               "max_tokens",
		"modle":                   "model", // two letters are swapped
		"deadlines":               "deadline",
		"x":                       "", // every letter of "n" differs
		"temperature":             "",
		"":                        "",
		strings.Repeat("n", 1000): "",
	} {
		if got := suggest.Nearest(name, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
}
