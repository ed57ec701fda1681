package headroom

import (
	"testing"
	"time"
)

// observed passes some minutes with a request each second, of which shares are expected and are
// late.
func observed(f *forecast, from time.Time, minutes int, expected, late float64) time.Time {
	for range minutes {
		from = from.Add(time.Minute)
		f.expect(expected, 60)
		f.read(from, 60, 60*late, 0)
	}
	return from
}

func TestForecastWithoutEvidence(t *testing.T) {
	f := forecast{allowed: 0.01}
	if got := f.error(); got != 1 {
		t.Errorf("the error is %v before any request, want 1", got)
	}
	f.read(noon, 100, 50, 0)
	if got := f.error(); got != 1 {
		t.Errorf("the error is %v by requests of which nothing was expected, want 1", got)
	}
}

// What was expected but does not come lowers the error, and what comes but was not expected raises
// it.
func TestForecastError(t *testing.T) {
	for _, test := range []struct {
		name           string
		expected, late float64
		want           float64 // after 100 requests
		bound          float64 // after many
	}{
		{"none late", 0.1, 0, 2.0 / 12, minForecast},
		{"half as many", 0.1, 0.05, 7.0 / 12, 95.0 / 188},
		{"as expected", 0.1, 0.1, 1, 1},
		{"more", 0.1, 0.3, 32.0 / 12, 3},
		{"far more", 0.01, 0.5, maxForecast, maxForecast},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f forecast // nothing is forgiven
			f.expect(test.expected, 1)
			f.read(noon, 100, 100*test.late, 0)
			if got := f.error(); !near(got, test.want) {
				t.Errorf("the error is %v after 100 requests, want %v", got, test.want)
			}
			observed(&f, noon, 600, test.expected, test.late)
			if got := f.error(); !near(got, test.bound) {
				t.Errorf("the error is %v after many requests, want %v", got, test.bound)
			}
		})
	}
}

// The expectation is a mean over the time since the last reading, and is used only once.
func TestForecastExpectsTheMeanShare(t *testing.T) {
	var f forecast
	f.expect(0.2, 1)
	f.expect(0, 3)
	f.read(noon, 100, 0, 0)
	if got, want := f.expected, 5.0; !near(got, want) {
		t.Errorf("%v late requests are expected, want %v", got, want)
	}
	f.read(noon, 100, 0, 0)
	if got, want := f.expected, 5.0; !near(got, want) {
		t.Errorf("%v late requests are expected by a second reading, want still %v", got, want)
	}
}

// A pool is not closed for ever: harm beyond expectation is forgiven as fast as harm is allowed.
func TestForecastForgives(t *testing.T) {
	f := forecast{allowed: 0.005}
	f.expect(0, 1)
	f.read(noon, 0, 9, 0)
	if got := f.error(); got != maxForecast {
		t.Fatalf("the error is %v after unexpected harm, want %v", got, maxForecast)
	}
	now := observed(&f, noon, 5, 0, 0)
	if got := f.error(); got < 2 {
		t.Errorf("the error is %v after a few requests, want 2 or more", got)
	}
	if observed(&f, now, 25, 0, 0); !near(f.error(), 1) {
		t.Errorf("the error is %v when as many might have been late, want 1", f.error())
	}
	// Forgiving is no proof that fewer are late than expected.
	if observed(&f, now, 600, 0, 0); f.error() < 1 {
		t.Errorf("the error falls to %v though none was expected", f.error())
	}
}

// What was shown hours ago counts less than forecastTrust.
func TestForecastForgets(t *testing.T) {
	f := forecast{allowed: 0.01}
	f.expect(0.2, 1)
	f.read(noon, 100, 0, 0)
	if got, want := f.error(), 2.0/22; !near(got, want) {
		t.Fatalf("the error is %v, want %v", got, want)
	}
	f.read(noon.Add(5*time.Hour), 0, 0, 0)
	if got, want := f.error(), 2/(20.0/11+2); !near(got, want) {
		t.Errorf("the error is %v five hours later, want %v", got, want)
	}
}

// More time for prompts of batch lines makes more late requests expected, but never more than all.
func TestForecastOfPrompts(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	c.sizes.start(8000, 0, 100, 100)
	expected := func(part float64) (first, tokens float64) {
		c.firstForecast, c.tokenForecast = forecast{}, forecast{}
		c.forecastLate(part, 1)
		return c.firstForecast.share, c.tokenForecast.share
	}
	first, tokens := expected(0)
	someFirst, someTokens := expected(0.5)
	allFirst, allTokens := expected(1)
	if !(first < someFirst && someFirst < allFirst && allFirst <= 1) {
		t.Errorf("late first tokens are %v, %v and %v", first, someFirst, allFirst)
	}
	if !(tokens < someTokens && someTokens < allTokens && allTokens <= 1) {
		t.Errorf("late answers are %v, %v and %v", tokens, someTokens, allTokens)
	}
	if most, _ := expected(7); most != allFirst {
		t.Errorf("late first tokens are %v with more than all of the time, want %v", most,
			allFirst)
	}
}

// Requests that may be late or not prove nothing: neither that as few are late as is seen, nor more
// than as many as were expected.
func TestForecastTrustsNoBucket(t *testing.T) {
	for hidden, want := range map[float64]float64{0: 2. / 12, 5: 7. / 12, 10: 1, 100: 1} {
		var f forecast
		f.expect(0.1, 1)
		f.read(noon, 100, 0, hidden)
		if got := f.error(); !near(got, want) {
			t.Errorf("%v hidden: the error is %v, want %v", hidden, got, want)
		}
	}
}
