package autoscale

import (
	"math"
	"testing"
	"time"
)

var midnight = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// seen lets a forecast watch a rate for days, every half minute.
func seen(days float64, rate func(t time.Time) float64) *forecast {
	f := &forecast{cfg: DefaultConfig().Forecast}
	for now := midnight; now.Before(midnight.Add(seconds(days * day.Seconds()))); now = now.Add(
		30 * time.Second) {
		f.observe(now, rate(now))
	}
	return f
}

// tide is a rate with a day and a night.
func tide(t time.Time) float64 {
	return 10 + 5*math.Sin(2*math.Pi*t.Sub(midnight).Hours()/24)
}

func TestForecastKnowsTheUsualDay(t *testing.T) {
	f := seen(2.5, tide)
	if !f.useSeason() {
		t.Fatal("a day like any other, and the usual day is no guide")
	}
	for _, ahead := range []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour,
		20 * time.Hour} {
		at := f.last.Add(ahead)
		if got, want := f.at(at), tide(at); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s ahead: %.2f, want %.2f", ahead, got, want)
		}
	}
	if b := f.band(); b != DefaultConfig().Forecast.BandLeast {
		t.Errorf("a band of %v for a rate without noise", b)
	}
}

func TestForecastFollowsToday(t *testing.T) {
	f := seen(2.5, func(t time.Time) float64 {
		if t.Sub(midnight) > 48*time.Hour {
			return 2 * tide(t) // twice as much today
		}
		return tide(t)
	})
	if got, want := f.at(f.last.Add(5*time.Minute)), 2*tide(f.last); math.Abs(got/want-1) > 0.1 {
		t.Errorf("soon: %.2f, want %.2f", got, want)
	}
	if got, want := f.at(f.last.Add(12*time.Hour)), tide(f.last.Add(12*time.Hour)); got < want ||
		got > 1.7*want {
		t.Errorf("in half a day: %.2f, want between the usual %.2f and twice that", got, want)
	}
}

// Where yesterday is no guide, the present is, within two hours of it showing.
func TestForecastGivesUpOnYesterday(t *testing.T) {
	f := seen(2+3.0/24, func(t time.Time) float64 {
		if t.Sub(midnight) > 48*time.Hour {
			return 20 - tide(t.Add(6*time.Hour)) // another shape
		}
		return tide(t.Add(6 * time.Hour))
	})
	if f.useSeason() {
		t.Errorf("three hours of another day, and yesterday is the guide: %.2f expected in an hour",
			f.at(f.last.Add(time.Hour)))
	}
}

func TestForecastBeforeItKnows(t *testing.T) {
	f := &forecast{cfg: DefaultConfig().Forecast}
	f.observe(midnight, math.NaN())
	f.observe(midnight.Add(time.Minute), math.NaN())
	if got := f.at(midnight.Add(time.Hour)); got != 0 {
		t.Errorf("nothing known, %v expected", got)
	}
	f.observe(midnight.Add(2*time.Minute), 7)
	if got := f.at(midnight.Add(time.Hour)); got != 7 {
		t.Errorf("7 known, %v expected", got)
	}
	if got := f.band(); got != DefaultConfig().Forecast.Band {
		t.Errorf("a band of %v", got)
	}
}

// The band covers all but one in twenty of the errors of the last day.
func TestForecastBand(t *testing.T) {
	n := 0
	f := seen(2, func(t time.Time) float64 {
		n++
		if slotOf(t)%10 == 0 {
			return 13 // one slot in ten is higher
		}
		return 10
	})
	if b := f.band(); b < 0.15 || b > 0.35 {
		t.Errorf("a band of %v for jumps of three tenths", b)
	}
}

func TestColdStarts(t *testing.T) {
	c := coldStarts{cfg: DefaultConfig().Start}
	if got := c.expect(); got != 3*time.Minute {
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
	if got := c.expect(); got != 200*time.Second {
		t.Errorf("after one in five of 200 s: %s", got)
	}
	if got := len(c.pending); got != 0 {
		t.Errorf("%d still pending", got)
	}
}
