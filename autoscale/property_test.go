package autoscale

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/flowcontrol"
)

// drawState draws a state at noon: up to two pools, of which one may serve chat, with replicas in
// any phase, and some jobs.
func drawState(t *rapid.T) State {
	var s State
	draw := func(p PoolState) {
		p.Max = rapid.IntRange(0, 20).Draw(t, "max")
		p.Min = rapid.IntRange(0, p.Max).Draw(t, "min")
		if rapid.Bool().Draw(t, "min 0") {
			p.Min = 0
		}
		p.Price = rapid.SampledFrom([]float64{0, 0.4, 1}).Draw(t, "price")
		p.Reclaim = rapid.SampledFrom([]float64{0, 0, 0.05, 0.9}).Draw(t, "reclaim")
		for i := range rapid.IntRange(0, 20).Draw(t, "replicas") {
			p.Replicas = append(p.Replicas, Replica{
				ID: fmt.Sprintf("%s-%02d", p.Name, i), Phase: rapid.SampledFrom(
					[]Phase{Starting, Ready, Ready, Draining}).Draw(t, "phase"),
				Since: noon.Add(-time.Duration(rapid.IntRange(0, 3600).Draw(
					t, "since")) * time.Second),
				Progress: float64(rapid.IntRange(0, 3).Draw(t, "progress")),
			})
		}
		s.Pools = append(s.Pools, p)
	}
	if rapid.Bool().Draw(t, "chat") {
		draw(chatPool(0, rapid.Float64Range(0, 25).Draw(t, "needed")))
	}
	if len(s.Pools) == 0 || rapid.Bool().Draw(t, "batch pool") {
		p := batchPool(0)
		if rapid.IntRange(0, 4).Draw(t, "no cost model") == 0 {
			p.Engine = flowcontrol.Engine{}
		}
		draw(p)
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "jobs") {
		j := ofModel(job(fmt.Sprint("job-", i), time.Duration(rapid.IntRange(-10, 3000).Draw(
			t, "due"))*time.Minute, rapid.Float64Range(0, 30).Draw(t, "work")), "")
		j.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
		j.Longest = rapid.SampledFrom([]int{0, 100, 6000}).Draw(t, "longest")
		j.Answered = rapid.SampledFrom([]int{0, 200, 200}).Draw(t, "answered")
		if rapid.IntRange(0, 4).Draw(t, "promise") == 0 {
			j.StartBy = noon.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "start by")) *
				time.Minute)
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

func clone(s State) State {
	s.Pools, s.Jobs = slices.Clone(s.Pools), slices.Clone(s.Jobs)
	for i := range s.Pools {
		s.Pools[i].Replicas = slices.Clone(s.Pools[i].Replicas)
	}
	return s
}

// A decision is within the bounds, complete, and the same for the same state.
func TestDecisionsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(policies.Names()).Draw(t, "policy")
		cfg := DefaultConfig()
		cfg.Policy = policy
		s := drawState(t)
		a, _ := New(cfg)
		b, _ := New(cfg)
		before := clone(s)
		for now := noon; now.Before(noon.Add(2 * time.Minute)); now = now.Add(30 * time.Second) {
			d := a.Step(now, s)
			shuffled := clone(s)
			slices.Reverse(shuffled.Jobs)
			for i := range shuffled.Pools {
				slices.Reverse(shuffled.Pools[i].Replicas)
			}
			if other := b.Step(now, shuffled); !reflect.DeepEqual(d, other) {
				t.Fatalf("the order of the state changed the decision:\n%+v\n%+v", d, other)
			}
			if !reflect.DeepEqual(before, s) {
				t.Fatal("Step changed the state")
			}
			if !d.Wake.After(now) {
				t.Fatalf("wake at %s, now is %s", d.Wake, now)
			}
			for i, w := range d.Pools {
				p := &s.Pools[i]
				switch {
				case w.Pool != p.Name:
					t.Fatalf("pool %d is %q, want %q", i, w.Pool, p.Name)
				case w.Replicas < p.Min || w.Replicas > p.Max:
					t.Fatalf("%d replicas, want %d to %d", w.Replicas, p.Min, p.Max)
				case w.Replicas > 0 && w.Reason == ReasonNone:
					t.Fatalf("%d replicas without a reason", w.Replicas)
				case w.Reported != w.Replicas+len(p.Replicas)-active(p):
					t.Fatalf("%d reported for %d and %d draining", w.Reported, w.Replicas, len(
						p.Replicas)-active(p))
				case policy != "static" && len(w.Drain) != max(0, active(p)-w.Replicas):
					t.Fatalf("%d of %d wanted, %q to drain", w.Replicas, active(p), w.Drain)
				}
			}
		}
	})
}

func first(t *rapid.T, s State, change ...func(*Config)) Decision {
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c.Step(noon, s)
}

// feasible reports whether no job is infeasible. Infeasible jobs get no replicas, so more work
// could need fewer.
func feasible(d Decision) bool {
	return !slices.ContainsFunc(d.Jobs, func(f Forecast) bool { return f.Verdict == Infeasible })
}

func replicas(d Decision) int {
	n := 0
	for _, w := range d.Pools {
		n += w.Replicas
	}
	return n
}

// More work, less time or another job never needs fewer replicas.
func TestMonotoneInWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		s.Pools = s.Pools[:1] // with two, more of one may be fewer in total
		if len(s.Jobs) == 0 {
			return
		}
		less := first(t, s)
		more := clone(s)
		j := &more.Jobs[rapid.IntRange(0, len(s.Jobs)-1).Draw(t, "job")]
		switch rapid.SampledFrom([]string{"work", "time", "job"}).Draw(t, "how") {
		case "work":
			factor := rapid.Float64Range(1, 3).Draw(t, "factor")
			j.Work *= factor
			j.Least *= factor
		case "time":
			j.Deadline = j.Deadline.Add(-time.Duration(rapid.IntRange(0, 600).Draw(
				t, "sooner")) * time.Second)
			if j.Deadline.Sub(noon) < time.Hour {
				return // too late to buy anything
			}
		case "job":
			another := *j
			another.Key.Batch = "another"
			more.Jobs = append(more.Jobs, another)
		}
		if d := first(t, more); feasible(d) && replicas(d) < replicas(less) {
			t.Fatalf("%d replicas (%+v), with more work %d (%+v)", replicas(less), less.Pools,
				replicas(d), d.Pools)
		}
	})
}

// More interactive traffic never needs fewer replicas.
func TestMonotoneInTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		if !s.Pools[0].Interactive.Served {
			return
		}
		s.Pools = s.Pools[:1]
		less := first(t, s)
		more := clone(s)
		more.Pools[0].Interactive.Rate *= rapid.Float64Range(1, 2).Draw(t, "factor")
		if d := first(t, more); feasible(d) && replicas(d) < replicas(less) {
			t.Fatalf("%d replicas (%+v), with more traffic %d (%+v)", replicas(less), less.Pools,
				replicas(d), d.Pools)
		}
	})
}

// A single job is infeasible if and only if all replicas, the missing ones after a cold start,
// cannot do its work in time for its last line.
func TestInfeasibleIfAllCannot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, ready := rapid.IntRange(1, 9).Draw(t, "max"), rapid.IntRange(0, 9).Draw(t, "ready")
		ready = min(ready, most)
		work, minutes := rapid.Float64Range(0.1, 20).Draw(t, "work"), rapid.IntRange(5, 300).Draw(t,
			"due")
		pool := with(batchPool(most), ready)
		d := first(t, State{Pools: []PoolState{pool}, Jobs: jobs{
			job("a", time.Duration(minutes)*time.Minute, work)}})
		cfg := DefaultConfig()
		line := newReplica(&pool, &cfg.Harvest, cfg.Forecast.Burst).lineTime().Hours()
		left := float64(minutes)/60 - line
		cold := min(cfg.Start.Cold.Hours(), max(left, 0))
		can := float64(ready)*cold + float64(most)*max(0, left-cold)
		if got, want := d.Jobs[0].Verdict == Infeasible, work > can; got != want &&
			max(work, can) > 1.0001*min(work, can) {
			t.Fatalf("infeasible %v: %v hours of work, %v can be done", got, work, can)
		}
	})
}

// Work that is not certain makes no job infeasible. The verdict infeasible is not withdrawn within
// the uncertainty, so that users do not see it change back and forth.
func TestInfeasibleIsCertainAndStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := build(t)
		s := State{Pools: []PoolState{with(batchPool(4), 4)},
			Jobs: jobs{job("a", 20*time.Hour, 0), job("b", 20*time.Hour, 1)}}
		least := rapid.Float64Range(60, 100).Draw(t, "least")
		changes, before := 0, OK
		for step := range 40 {
			now := noon.Add(time.Duration(step) * 30 * time.Second)
			s.Jobs[0].Work = hours(400)
			s.Jobs[0].Least = hours(least * rapid.Float64Range(0.97, 1.03).Draw(t, "noise"))
			if rapid.IntRange(0, 4).Draw(t, "unseen") == 0 && before != Infeasible {
				s.Jobs[0].Least = 0
			}
			got := c.Step(now, s).Jobs[0].Verdict
			if got == Infeasible && s.Jobs[0].Least == 0 {
				t.Fatal("infeasible though its least work is unknown")
			}
			if (got == Infeasible) != (before == Infeasible) {
				changes++
			}
			before = got
		}
		if changes > 1 {
			t.Fatalf("the verdict changed %d times within 20 minutes", changes)
		}
	})
}

// The number of replicas does not oscillate while nothing happens.
func TestNoFlapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Pools: []PoolState{batchPool(rapid.IntRange(1, 8).Draw(t, "max"))}}
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			s.Jobs = append(s.Jobs, job(fmt.Sprint("job-", i), time.Duration(
				rapid.IntRange(60, 600).Draw(t, "due"))*time.Minute, rapid.Float64Range(
				0.2, 3).Draw(t, "work")))
		}
		l := &simulation{t: t, late: true, controller: build(t),
			cold:  150 * time.Second,
			state: s}
		turns, before, up := 0, 0, true
		l.onStep = func(d Decision) {
			n := d.Pools[0].Replicas
			if n != before && n > before != up {
				up = !up
				turns++
			}
			before = n
		}
		l.run(noon.Add(11 * time.Hour))
		// Up and down once for each job at most, if their deadlines are far apart.
		if turns > 2*len(s.Jobs) {
			t.Fatalf("%d turns for %d jobs", turns, len(s.Jobs))
		}
	})
}
