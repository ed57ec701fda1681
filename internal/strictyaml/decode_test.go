package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/strictyaml"
)

// Whatever is too large, too deep, or repeated by aliases, is refused soon.
func TestDocumentsAreBounded(t *testing.T) {
	bombs := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		from, to := string(rune('a'+i)), string(rune('b'+i))
		bombs += to + ": &" + to + " [" + strings.Repeat("*"+from+", ", 9) + "*" + from + "]\n"
	}
	for name, text := range map[string]string{
		"many values":   "[" + strings.Repeat("x, ", 20_000) + "x]",
		"many aliases":  bombs,
		"deep sections": strings.Repeat("[", 40) + strings.Repeat("]", 40),
	} {
		documents, fault := strictyaml.Documents([]byte(text))
		if fault != nil {
			t.Fatalf("%s: %v", name, fault)
		}
		var value any
		faults := strictyaml.Decode(documents[0], "", &value).Faults()
		if len(faults) == 0 || len(faults) > 100 || !strings.Contains(faults[0].Error(), "too ") {
			t.Errorf("%s: faults %v", name, faults)
		}
	}
	if _, fault := strictyaml.Documents(make([]byte, strictyaml.MaxBytes+1)); fault == nil {
		t.Error("a text that is too long was read")
	}
}
