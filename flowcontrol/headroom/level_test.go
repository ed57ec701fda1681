package headroom

import (
	"testing"
	"time"
)

// answered moves a level by a rate of requests for some time, of which a share is late.
func answered(l *level, rate, late float64, during time.Duration) {
	for i := range int(during / time.Second) {
		now := noon.Add(time.Duration(i) * time.Second)
		l.update(now, rate, rate*late, 1)
	}
}

func testLevel() level {
	cfg := Level{Start: 0.5, Min: 0.01, Max: 1, Gain: 0.007, MaxFall: 0.03, BudgetShare: 1}
	return newLevel(cfg, 0.01)
}

// A level rises where nothing is late, also where few requests could be.
func TestLevelRisesWithFewRequests(t *testing.T) {
	few, many := testLevel(), testLevel()
	answered(&few, 0.5, 0, 10*time.Minute)
	answered(&many, 20, 0, 10*time.Minute)
	if few.value < 0.6 || few.value > 1.2*many.value {
		t.Errorf("within ten minutes the level rose to %v, to %v with many requests, want alike",
			few.value, many.value)
	}
}

// A level stays where as many requests are late as may be, and falls where more are.
func TestLevelSettlesAtTheAllowedShare(t *testing.T) {
	for _, rate := range []float64{0.5, 20, 300} {
		right, wrong := testLevel(), testLevel()
		answered(&right, rate, 0.01, 10*time.Minute)
		answered(&wrong, rate, 0.03, 10*time.Minute)
		if right.value < 0.49 || right.value > 0.51 || wrong.value > 0.3 {
			t.Errorf("at %v requests a second the level is %v, with three times as many late %v",
				rate, right.value, wrong.value)
		}
	}
}

// A level falls as fast where readings are rare.
func TestLevelFallsAsFastByRareReadings(t *testing.T) {
	read := func(every time.Duration) float64 {
		l := testLevel()
		l.cfg.Gain, l.cfg.Max = 0.1, 1e6
		for s := time.Duration(0); s < 5*time.Minute; s += every {
			requests := 20 * every.Seconds()
			l.update(noon.Add(s), requests, 0.1*requests, 1)
		}
		return l.value
	}
	often, rarely := read(5*time.Second), read(20*time.Second)
	if ratio := rarely / often; ratio < 0.8 || ratio > 1.25 {
		t.Errorf("readings each 5 s lower the level to %v, each 20 s to %v", often, rarely)
	}
}
