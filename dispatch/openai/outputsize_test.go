package openai

import "testing"

func TestCharactersAreCountedAsWritten(t *testing.T) {
	for s, want := range map[string]int{
		`""`:               0,
		`" a b\n"`:         2,
		`"\"q\" \\ \/"`:    1,
		`"é – 🌊"`:          3,
		`"\u00e9\u2013"`:   2,
		`"\ud83c\udf0a x"`: 2,
		`"\u`:              0, // cut: what it counts does not matter
	} {
		if got := countCharacters([]byte(s)); got != want {
			t.Errorf("%s: got %d characters, want %d", s, got, want)
		}
	}
}
