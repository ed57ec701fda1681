package shellword

import (
	"os/exec"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"fixed,per_runner=8": "fixed,per_runner=8", "/a/b.yaml": "/a/b.yaml", "": "''",
		"a b": "'a b'", "it's": `'it'\''s'`, "a;b": "'a;b'", "~/x": "'~/x'", "$HOME": "'$HOME'",
	} {
		if got := Of(text); got != want {
			t.Errorf("%q as a word is %s, want %s", text, got, want)
		}
		got, err := exec.Command("sh", "-c", "printf %s "+Of(text)).Output()
		if err != nil || string(got) != text {
			t.Errorf("a shell reads %s as %q, want %q: %v", Of(text), got, text, err)
		}
	}
}
