package autoscale

import (
	"math"
	"testing"
	"time"
)

var midnight = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// observed returns a forecast that has observed a rate for days, every half minute.
func observed(days float64, rate func(t time.Time) float64) *forecast {
	f := &forecast{cfg: DefaultConfig().Forecast}
	for now := midnight; now.Before(midnight.Add(seconds(days * day.Seconds()))); now = now.Add(
		30 * time.Second) {
		f.observe(now, rate(now))
	}
	return f
}

// daily is a rate with a period of a day.
func daily(t time.Time) float64 {
	return 10 + 5*math.Sin(2*math.Pi*t.Sub(midnight).Hours()/24)
}

func TestForecastFollowsTheUsualDay(t *testing.T) {
	f := observed(2.5, daily)
	if !f.useSeasonal() {
		t.Fatal("the seasonal prediction is not used though all days are equal")
	}
	for _, ahead := range []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour,
		20 * time.Hour} {
		at := f.last.Add(ahead)
		if got, want := f.at(at), daily(at); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s ahead: %.2f, want %.2f", ahead, got, want)
		}
	}
	if b := f.band(); b != DefaultConfig().Forecast.MinBand {
		t.Errorf("band %v for a rate without noise", b)
	}
}

func TestForecastIsCorrectedByTheRateNow(t *testing.T) {
	f := observed(2.5, func(t time.Time) float64 {
		if t.Sub(midnight) > 48*time.Hour {
			return 2 * daily(t) // twice as much today
		}
		return daily(t)
	})
	if got, want := f.at(f.last.Add(5*time.Minute)), 2*daily(f.last); math.Abs(got/want-1) > 0.1 {
		t.Errorf("in five minutes: %.2f, want %.2f", got, want)
	}
	if got, want := f.at(f.last.Add(12*time.Hour)), daily(f.last.Add(12*time.Hour)); got < want ||
		got > 1.7*want {
		t.Errorf("in half a day: %.2f, want between the usual %.2f and twice that", got, want)
	}
}

// When the day differs from the usual one, the current prediction is used within three hours.
func TestForecastChangesToTheCurrentPrediction(t *testing.T) {
	f := observed(2+3.0/24, func(t time.Time) float64 {
		if t.Sub(midnight) > 48*time.Hour {
			return 20 - daily(t.Add(6*time.Hour)) // another shape
		}
		return daily(t.Add(6 * time.Hour))
	})
	if f.useSeasonal() {
		t.Errorf(
			"the seasonal prediction is used after three hours of another day: "+
				"%.2f expected in an hour",
			f.at(f.last.Add(time.Hour)))
	}
}

func TestForecastWithoutHistory(t *testing.T) {
	f := &forecast{cfg: DefaultConfig().Forecast}
	f.observe(midnight, math.NaN())
	f.observe(midnight.Add(time.Minute), math.NaN())
	if got := f.at(midnight.Add(time.Hour)); got != 0 {
		t.Errorf("rate %v expected of unknown traffic, want 0", got)
	}
	f.observe(midnight.Add(2*time.Minute), 7)
	if got := f.at(midnight.Add(time.Hour)); got != 7 {
		t.Errorf("rate %v expected after a rate of 7", got)
	}
	if got := f.band(); got != DefaultConfig().Forecast.Band {
		t.Errorf("band %v, want the configured one", got)
	}
}

// The band covers all but one in twenty of the errors of the last day.
func TestForecastBand(t *testing.T) {
	n := 0
	f := observed(2, func(t time.Time) float64 {
		n++
		if slotOf(t)%10 == 0 {
			return 13 // one slot in ten is higher
		}
		return 10
	})
	if b := f.band(); b < 0.15 || b > 0.35 {
		t.Errorf("band %v for jumps of 0.3", b)
	}
}

func TestColdStarts(t *testing.T) {
	c := coldStarts{cfg: DefaultConfig().Start}
	if got := c.expected(); got != 3*time.Minute {
		t.Errorf("before any: %s", got)
	}
	now := noon
	for i := range 20 {
		took := 100 * time.Second
		if i%5 == 0 {
			took = 200 * time.Second
		}
		c.observe(now, []Replica{{ID: "a", Phase: Starting, Since: now}})
		now = now.Add(took)
		c.observe(now, []Replica{{ID: "a", Phase: Ready, Since: now}})
		c.observe(now, nil)
	}
	if got := c.expected(); got != 200*time.Second {
		t.Errorf("after one in five of 200 s: %s", got)
	}
	if got := len(c.pending); got != 0 {
		t.Errorf("%d still pending", got)
	}
}
