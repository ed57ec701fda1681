package dispatch

import (
	"testing"
	"time"
)

func TestAbout(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second:               "less than 1 min",
		59 * time.Second:          "less than 1 min",
		time.Minute:               "about 1 min",
		150 * time.Second:         "about 3 min",
		599 * time.Second:         "about 10 min",
		12 * time.Minute:          "about 10 min",
		13 * time.Minute:          "about 15 min",
		56 * time.Minute:          "about 55 min",
		57 * time.Minute:          "about 1 h",
		100 * time.Minute:         "about 2 h",
		47 * time.Hour:            "about 47 h",
		60 * time.Hour:            "about 3 days",
		10 * 365 * 24 * time.Hour: "about 3650 days",
	} {
		if got := about(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
