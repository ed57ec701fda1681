package autoscale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// A fleet decides to the last bit the same, however often it was asked what jobs would mean.
func TestPeekChangesNoDecision(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	twin := newFleet(t)
	l := dayOfChat(t, newFleet(t))
	asked := 0
	l.onStep = func(d Decision) {
		for range random.IntN(3) {
			before := clone(l.state)
			now := l.now.Add(-time.Duration(random.IntN(30)) * time.Second)
			twin.Peek(now, l.state, jobs{ofModel(job("x", time.Duration(random.IntN(
				90))*time.Hour, 40*random.Float64()), "m"), {Key: batch("y"), Work: 1}})
			if diff := cmp.Diff(before, l.state); diff != "" {
				t.Fatalf("Peek changed the state: %s", diff)
			}
			asked++
		}
		if diff := cmp.Diff(d, twin.Step(l.now, l.state)); diff != "" {
			t.Fatalf("%s: -never asked +asked\n%s", l.now.Sub(noon), diff)
		}
		l.state.Pools[0].Interactive.Rate = chatRate(l.now, random)
		if random.IntN(200) == 0 {
			l.state.Jobs = append(l.state.Jobs, ofModel(job(l.now.String(), l.now.Sub(noon)+
				time.Duration(1+random.IntN(6))*time.Hour, 30*random.Float64()), "m"))
		}
	}
	l.run(noon.Add(10 * time.Hour))
	if asked < 500 {
		t.Errorf("asked %d times", asked)
	}
}

// A preview is what the next step says of the job.
func TestPreviewIsTheNextForecast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		j := ofModel(job("new", time.Duration(rapid.IntRange(-10, 3000).Draw(t, "due"))*time.Minute,
			rapid.Float64Range(0.1, 30).Draw(t, "work")), "")
		f := newFleet(t)
		p := f.Peek(noon, s, jobs{j})
		with := clone(s)
		with.Jobs = append(with.Jobs, j)
		without, after := newFleet(t).Step(noon, s), newFleet(t).Step(noon, with)
		got := p.Jobs[0]
		verdict := map[string]Verdict{}
		for _, x := range without.Jobs {
			verdict[x.Job] = x.Verdict
		}
		worse := 0
		for _, x := range after.Jobs {
			switch was := verdict[x.Job]; {
			case x.Job == "new" && x.Verdict != got.Verdict:
				t.Fatalf("previewed %s, then %s", got.Verdict, x.Verdict)
			case x.Job != "new" && was.better(x.Verdict):
				worse++
			}
		}
		if len(p.Worse) != worse {
			t.Fatalf("%+v, then %d were worse", p.Worse, worse)
		}
		if got.Unknown != "" || got.Job != "new" || got.Work != j.Work {
			t.Fatalf("%+v", got)
		}
		if got.Earliest.After(got.Finish) && !got.Finish.IsZero() ||
			got.Finish.After(got.Latest) && !got.Latest.IsZero() {
			t.Fatalf("%s is not from %s to %s", got.Finish, got.Earliest, got.Latest)
		}
	})
}

// exactFleet returns a fleet whose predictions of engines without a cost model have been exact.
func exactFleet(t faulter, s State) *Fleet {
	f := newFleet(t)
	for i := range s.Pools {
		err := f.Recall(noon, PoolLearned{Pool: s.Pools[i].Name, Harvest: HarvestLearned{
			Share:  DefaultConfig().Harvest.Share,
			Misses: [][]float64{make([]float64, missesKept)},
		}}, 0)
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	return f
}

// A job is met with the nearest feasible deadline, without harm to others, and not with an earlier
// one. By engines without a cost model an earlier one may be met: they are measured, and up to
// minMiss faster than that.
func TestNearestFeasibleDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		for i := range s.Jobs {
			s.Jobs[i].Least = s.Jobs[i].Work
		}
		j := ofModel(job("new", 10*time.Hour, rapid.Float64Range(0.1, 30).Draw(t, "work")), "")
		near := exactFleet(t, s).Peek(noon, s, jobs{j}).Jobs[0]
		if near.Feasible.IsZero() {
			return // no replica can be had
		}
		harmOf := func(deadline time.Time, by, others float64) bool {
			j.Deadline = deadline
			s := clone(s)
			for i := range s.Jobs {
				s.Jobs[i].Work *= others
				s.Jobs[i].Least *= others
			}
			p := exactFleet(t, s).Peek(noon, s, jobs{j})
			if by > 0 && p.Jobs[0].Verdict != OK || p.Jobs[0].Verdict == Infeasible {
				return true
			}
			for _, w := range p.Worse {
				if w.After == Infeasible {
					return true
				}
			}
			return false
		}
		// The job's lines change the rate a little, which decides whether a job is late that has
		// all but as much work as can be done. It isn't at such an edge with a little more or less.
		harm := func(deadline time.Time, by float64) (always, some bool) {
			always = true
			for _, others := range []float64{0.999, 1, 1.001} {
				x := harmOf(deadline, by, others)
				always, some = always && x, some || x
			}
			return always, some
		}
		if always, _ := harm(near.Feasible.Add(time.Second), 0); always {
			t.Fatalf("missed with the deadline %s that was said to be feasible",
				near.Feasible.Sub(noon))
		}
		measured := slices.ContainsFunc(s.Pools, func(p PoolState) bool {
			return p.Engine == flowcontrol.Engine{}
		})
		early := near.Feasible.Add(-near.Feasible.Sub(noon) / 20)
		if _, some := harm(early, 0); !measured && !some {
			t.Fatalf("met with the deadline %s, before the earliest feasible one, %s",
				early.Sub(noon), near.Feasible.Sub(noon))
		}
		if !near.Sure.IsZero() && near.Sure.Before(near.Feasible) {
			t.Fatalf("sure %s, but feasible from %s only", near.Sure, near.Feasible)
		}
		if len(s.Jobs) == 0 && !near.Sure.IsZero() &&
			harmOf(near.Sure.Add(time.Second), 0.1, 1) {
			t.Fatalf("not sure to be met with the deadline %s", near.Sure.Sub(noon))
		}
	})
}

func TestPreviewOfOddJobs(t *testing.T) {
	fixed := with(serving(batchPool(3), "fixed", "m"), 3)
	fixed.Min = 3
	blind := with(serving(batchPool(3), "blind", "b"), 2)
	blind.Engine = flowcontrol.Engine{}
	s := State{Pools: []PoolState{fixed, blind}, Jobs: jobs{
		ofModel(job("same", 5*time.Hour, 12), "m")}}
	ask := func(j plan.Demand, model string) (JobPreview, Preview) {
		p := newFleet(t).Peek(noon, s, jobs{ofModel(j, model)})
		return p.Jobs[0], p
	}
	if got, p := ask(job("x", time.Hour, 1), "other"); got.Verdict != "" ||
		!strings.Contains(got.Unknown, `"other"`) || len(p.Pools) > 0 {
		t.Errorf("no pool: %+v %+v", got, p)
	}
	if got, p := ask(job("x", 8*time.Hour, 1), "b"); got.Verdict != OK || got.Finish.IsZero() ||
		p.Pools[0].Pool != "blind" || got.Latest.Sub(noon) < 5*got.Earliest.Sub(noon) {
		t.Errorf("an unknown engine: %+v", got)
	}
	got, p := ask(job("x", 4*time.Hour, 2), "m")
	if want := []Worsened{{"same/m", OK, AtRisk}}; got.Verdict != OK || cmp.Diff(want, p.Worse) !=
		"" || p.Pools[0].Hours != 0 {
		t.Errorf("a fixed pool: %+v, %+v", got, p)
	}
	got, p = ask(job("same", 4*time.Hour, 9), "m")
	if want := []Worsened{{"same/m", OK, Infeasible}}; cmp.Diff(want, p.Worse) != "" {
		t.Errorf("a job with the ID of another one: %+v, %+v", got, p)
	}
	if got, _ = ask(job("x", time.Hour, 30), "m"); got.Verdict != Infeasible ||
		got.Feasible.Sub(noon) < 14*time.Hour || got.Sure.Before(got.Feasible) {
		t.Errorf("too much: %+v", got)
	}
	// A job that is late only because of the new one still has to meet its deadline.
	spot := batchPool(13)
	spot.Engine, spot.Reclaim = flowcontrol.Engine{}, 0.9
	large := State{Pools: []PoolState{spot}, Jobs: jobs{
		job("large", 6*time.Hour+55*time.Minute, 7.75)}}
	large.Jobs[0].Least = large.Jobs[0].Work
	j := job("x", 10*time.Hour, 4)
	j.Least = j.Work
	harmful := exactFleet(t, large).Peek(noon, large, jobs{j})
	if want := []Worsened{{"large", AtRisk, Infeasible}}; cmp.Diff(want, harmful.Worse) != "" {
		t.Fatalf("a job that makes another one late: %+v", harmful)
	}
	j.Deadline = harmful.Jobs[0].Feasible.Add(time.Second)
	if p = exactFleet(t, large).Peek(noon, large, jobs{j}); len(p.Worse) > 0 {
		t.Errorf("feasible from %s, and then %+v", j.Deadline.Sub(noon), p.Worse)
	}
	j = job("x", 0, 1)
	j.Deadline = time.Time{}
	if got, p = ask(j, "m"); got.Verdict != "" || got.Finish.IsZero() || len(p.Worse) > 0 ||
		got.Feasible.IsZero() {
		t.Errorf("no deadline: %+v", got)
	}
	if got, _ = ask(job("x", -time.Hour, 1), "m"); got.Verdict != Infeasible ||
		!got.Finish.After(noon) || !got.Feasible.After(noon) {
		t.Errorf("a deadline in the past: %+v", got)
	}
	s.Pools[0].Min, s.Pools[0].Replicas = 0, nil
	got, p = ask(job("x", 4*time.Hour, 2), "m")
	if x := p.Pools[0]; got.Verdict == Infeasible || len(p.Pools) != 1 || x.Replicas != 3 ||
		x.Without != 3 || x.Hours < 1.9 || x.Hours > 2.3 {
		t.Errorf("a pool at zero: %+v, %+v", got, p)
	}
	cfg := DefaultConfig()
	cfg.Policy = "queue_length"
	f, err := NewFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Peek(noon, s, jobs{j}).Jobs[0]; !strings.Contains(got.Unknown, "queue_length") {
		t.Errorf("another policy: %+v", got)
	}
}

// BenchmarkPeek measures a preview beside 1,000 jobs. The aim is less than 10 ms.
func BenchmarkPeek(b *testing.B) {
	p, spare := with(chatPool(100, 30), 30), batchPool(100)
	s := State{Pools: []PoolState{p, spare}}
	for i := range 1000 {
		s.Jobs = append(s.Jobs, ofModel(job(fmt.Sprintf("job-%04d", i), time.Hour+time.Duration(
			i)*23*time.Hour/1000, 0.5), ""))
	}
	f := newFleet(b)
	f.Step(noon, s)
	for b.Loop() {
		x := ofModel(job("x", 5*time.Hour, 1), "")
		if got := f.Peek(noon, s, jobs{x}); got.Jobs[0].Verdict ==
			"" {
			b.Fatal(got)
		}
	}
}
