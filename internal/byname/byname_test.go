package byname_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/byname"
)

func TestRegistry(t *testing.T) {
	r := byname.New[int]("policy")
	r.Register("slack", 1)
	r.Register("edf", 2)
	if got, err := r.Get("slack"); got != 1 || err != nil {
		t.Errorf("Get(slack) = %d, %v, want 1", got, err)
	}
	for name, want := range map[string]string{
		"slak":    `unknown policy "slak": did you mean "slack"? there are edf, slack`,
		"longest": `unknown policy "longest"; there are edf, slack`,
		"":        `unknown policy ""; there are edf, slack`,
	} {
		if _, err := r.Get(name); err == nil || err.Error() != want {
			t.Errorf("Get(%q): got error %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"edf", ""} {
		func() {
			defer func() {
				if message, _ := recover().(string); !strings.Contains(message, "policy") {
					t.Errorf("Register(%q) does not panic with the noun: %q", name, message)
				}
			}()
			r.Register(name, 3)
		}()
	}
}
