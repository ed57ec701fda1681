package dispatch

import (
	"testing"
	"time"
)

// The age of a state that was saved in the future is unknown.
func TestLearnedAge(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		time.Hour: time.Hour, 0: 0, -time.Second: 0, -time.Hour: ageUnknown,
	} {
		if got := learnedAge(age); got != want {
			t.Errorf("%v counts as %v, want %v", age, got, want)
		}
	}
}

func FuzzDecodeLearned(f *testing.F) {
	f.Add([]byte(`{"Version":1,"Models":["m"],"Flow":"aQ==","Answers":{"m":{"Mean":1}}}`))
	f.Add([]byte(`{"Version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := decodeLearned(data); err != nil && l.Models != nil {
			t.Errorf("%v, but %+v", err, l)
		}
	})
}
