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

// Names of models are long, and users leave parts of them out.
func TestNearestLongerName(t *testing.T) {
	known := []string{"large-v2", "meta-llama/Llama-3-70B-Instruct", "small-v1", "small-v2"}
	for name, want := range map[string]string{
		"large":                 "large-v2",
		"Llama-3-70B-Instruct":  "meta-llama/Llama-3-70B-Instruct",
		"llama-3":               "meta-llama/Llama-3-70B-Instruct",
		"meta-llama/llama":      "meta-llama/Llama-3-70B-Instruct",
		"small":                 "", // either
		"la":                    "",
		"instruct":              "",
		"llama-3-70b-instruct2": "",
	} {
		if got := suggest.Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
