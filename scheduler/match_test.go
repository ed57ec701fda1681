package scheduler

import (
	"testing"

	"pgregory.net/rapid"
)

func TestGlobAgreesWithTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringOfN(rapid.RuneFrom([]rune("ab/*?")), 0, 8, -1).Draw(t, "glob")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab/*")), 0, 8, -1).Draw(t, "name")
		if got, want := globMatches(glob, name), slowGlob(glob, name); got != want {
			t.Fatalf("%q matches %q: got %v, want %v", glob, name, got, want)
		}
	})
}

func slowGlob(glob, name string) bool {
	switch {
	case glob == "":
		return name == ""
	case glob[0] == '*':
		return slowGlob(glob[1:], name) || name != "" && slowGlob(glob, name[1:])
	default:
		return name != "" && (glob[0] == '?' || glob[0] == name[0]) && slowGlob(glob[1:], name[1:])
	}
}
