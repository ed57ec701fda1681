package autoscale

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// unknownPool is a pool of fixed size of whose engine nothing is known.
func unknownPool(replicas int) PoolState {
	p := NewPool(registry.Pool{Name: "plain", Min: replicas, Max: replicas},
		flowcontrol.Config{})
	return with(p, replicas)
}

// harvested steps a fleet for an hour in which a pool does some work in each step of five seconds,
// while more waits. It returns the last decision, and its time.
func harvested(t *testing.T, f *Fleet, p PoolState, work func() float64) (Decision, time.Time) {
	t.Helper()
	var d Decision
	now := noon.Add(10 * time.Minute)
	for range 720 {
		d = f.Step(now, State{Pools: []PoolState{p}, Jobs: jobs{job("a", 24*time.Hour, 1)}})
		now = now.Add(5 * time.Second)
		p.Harvested += work()
	}
	return d, now
}

// Without a cost model the end follows from the rate that was measured, whatever the engine: forty
// times as fast as assumed, or forty times as slow.
func TestRatesAreMeasuredWithoutACostModel(t *testing.T) {
	for _, rate := range []float64{20000, 500, 12} {
		d, now := harvested(t, newFleet(t), unknownPool(2), func() float64 { return 5 * rate })
		left := job("a", 0, 1).Work / rate
		got := d.Jobs[0].Finish.Sub(now).Seconds()
		if got < 0.9*left || got > 1.1*left+60 {
			t.Errorf("at %v ms a second the job is predicted to take %.0f s, want about %.0f",
				rate, got, left)
		}
	}
}

// What was learned while a pool got nothing done can be kept, and taken over.
func TestStalledPoolsAreLearned(t *testing.T) {
	f, steps := newFleet(t), 0
	_, now := harvested(t, f, unknownPool(1), func() float64 {
		if steps++; steps > 300 && steps < 500 {
			return 0
		}
		return 5000
	})
	data, err := json.Marshal(f.Learned(now))
	if err != nil {
		t.Fatal(err)
	}
	var learned []PoolLearned
	if err := json.Unmarshal(data, &learned); err != nil || len(learned) != 1 {
		t.Fatalf("learned of %d pools, %v", len(learned), err)
	}
	if err := newFleet(t).Recall(now, learned[0], 0); err != nil {
		t.Error(err)
	}
}

// The band is as wide as predictions have been wrong.
func TestBandsAreAsWideAsPastErrors(t *testing.T) {
	width := func(spread float64) float64 {
		random := rand.New(rand.NewPCG(1, 2))
		d, now := harvested(t, newFleet(t), unknownPool(1), func() float64 {
			return 5000 * math.Exp(spread*random.NormFloat64())
		})
		f := d.Jobs[0]
		return f.Latest.Sub(now).Seconds() / f.Earliest.Sub(now).Seconds()
	}
	steady, noisy := width(0), width(2)
	if steady > 1.4 {
		t.Errorf("the latest end of a steady pool is %.2f times as far away as the earliest",
			steady)
	}
	if noisy < 2*steady {
		t.Errorf("of a noisy pool %.2f times, of a steady one %.2f", noisy, steady)
	}
}

// Before anything is known of an engine, nothing is lost, and nothing is sure.
func TestNothingIsLostOnAnUnknownEngine(t *testing.T) {
	work := 2.0 // hours of work of the one replica, at the assumed rate
	d := newFleet(t).Step(noon, State{Pools: []PoolState{unknownPool(1)},
		Jobs: jobs{job("a", time.Hour, work)}})
	if f := d.Jobs[0]; f.Verdict != AtRisk {
		t.Errorf("twice as much work as expected in the time: %+v, want at_risk", f)
	}
	slow, _ := harvested(t, newFleet(t), unknownPool(1), func() float64 { return 100 })
	if f := slow.Jobs[0]; f.Verdict != Infeasible {
		t.Errorf("on an engine that was seen to be too slow: %+v, want infeasible", f)
	}
}

// A job is infeasible if neither the rate of the last hour nor that of the last minutes suffices,
// by no more than predictions have been wrong.
func TestLateByTheHourAndTheMinutes(t *testing.T) {
	for _, x := range []struct {
		what        string
		hour, ended float64 // done in a step of five seconds, at first and in the last ten minutes
		work        float64 // over what the hour's rate does until the deadline
		want        Verdict
	}{
		{"a tenth too much at a steady rate", 500, 500, 1.1, Infeasible},
		{"feasible but for some slow minutes", 500, 300, 0.8, AtRisk},
		{"feasible at the present rate", 500, 1000, 1.5, AtRisk},
	} {
		steps := 0
		p := unknownPool(1)
		f := newFleet(t)
		_, now := harvested(t, f, p, func() float64 {
			if steps++; steps > 600 {
				return x.ended
			}
			return x.hour
		})
		p.Harvested += 600*x.hour + 120*x.ended
		j := job("a", 0, 1)
		j.Deadline = now.Add(2 * time.Hour)
		j.Work = x.work * x.hour / 5 * (2 * time.Hour).Seconds()
		j.Least = j.Work
		d := f.Step(now, State{Pools: []PoolState{p}, Jobs: jobs{j}})
		if got := d.Jobs[0].Verdict; got != x.want {
			t.Errorf("%s: %s, want %s", x.what, got, x.want)
		}
	}
}

// What was measured of an engine outlasts a night without lines and a restart.
func TestMeasuredRatesAreRemembered(t *testing.T) {
	p := unknownPool(1)
	f := newFleet(t)
	before, now := harvested(t, f, p, func() float64 { return 25000 })
	again := newFleet(t)
	morning := now.Add(14 * time.Hour)
	for _, l := range f.Learned(now) {
		if err := again.Recall(morning, l, 14*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	d := again.Step(morning, State{Pools: []PoolState{p}, Jobs: jobs{job("a", 40*time.Hour, 1)}})
	was, is := before.Jobs[0].Finish.Sub(now), d.Jobs[0].Finish.Sub(morning)
	if ratio := float64(is) / float64(was); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("the same job takes %v after the restart, and took %v before", is, was)
	}
	narrow := func(f Forecast, at time.Time) float64 {
		return f.Latest.Sub(at).Seconds() / f.Earliest.Sub(at).Seconds()
	}
	if b, a := narrow(before.Jobs[0], now), narrow(d.Jobs[0], morning); a > 1.2*b {
		t.Errorf("the band is %.2f after the restart, and was %.2f", a, b)
	}
}
