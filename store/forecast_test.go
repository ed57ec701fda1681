package store_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// A forecast that moved by less than a twentieth of the time ahead stays what users saw.
func TestForecastsThatAreNear(t *testing.T) {
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	in := func(finish time.Duration) store.Forecast {
		return store.Forecast{Verdict: store.VerdictOK, Finish: now.Add(finish),
			Earliest: now.Add(finish / 2), Latest: now.Add(2 * finish)}
	}
	unknown := in(time.Hour)
	unknown.Latest = time.Time{}
	late := in(time.Hour)
	late.Verdict = store.VerdictAtRisk
	more := in(time.Hour)
	more.OneMore = now.Add(time.Minute)
	for _, test := range []struct {
		name string
		g    store.Forecast
		near bool
	}{
		{"the same", in(time.Hour), true},
		{"two minutes later", in(62 * time.Minute), true},
		{"five minutes later", in(65 * time.Minute), false},
		{"a bound that is not known any more", unknown, false},
		{"another verdict", late, false},
		{"another remedy", more, false},
	} {
		if got := in(time.Hour).Near(test.g, now); got != test.near {
			t.Errorf("%s: near is %v, want %v", test.name, got, test.near)
		}
	}
	if in(-time.Minute).Near(in(-2*time.Minute), now) {
		t.Error("times that have passed are near")
	}
}
