package autoscale

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

func wanted(d Decision, pool string) Wanted {
	i := slices.IndexFunc(d.Pools, func(w Wanted) bool { return w.Pool == pool })
	return d.Pools[i]
}

func TestReplicasOfTheFirstStep(t *testing.T) {
	tests := []struct {
		name   string
		state  State
		want   []int
		reason Reason
	}{
		{"nothing to do", State{Pools: []PoolState{batchPool(4)}}, []int{0}, ReasonNone},
		{"time enough", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{job("a", 24*time.Hour, 3)}},
			[]int{0}, ReasonNone},
		{"no deadline", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Lines: 1, Work: hours(50)}}}, []int{0},
			ReasonNone},
		{"paused", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Deadline: noon.Add(time.Hour), Lines: 1, Work: hours(
				2), Paused: true}}}, []int{0}, ReasonNone},
		{"at the latest start", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{job("a", 3*time.Hour+7*time.Minute, 3)}}, []int{1}, ReasonDeadline},
		{"two and a half", State{Pools: []PoolState{batchPool(9)},
			Jobs: jobs{job("a", 4*time.Hour, 9.5)}}, []int{2}, ReasonDeadline},
		{"all replicas", State{Pools: []PoolState{batchPool(3)},
			Jobs: jobs{job("a", 4*time.Hour, 11.3)}}, []int{3}, ReasonAtRisk},
		{"more than all replicas", State{Pools: []PoolState{batchPool(3)},
			Jobs: jobs{job("a", 4*time.Hour, 11.9)}}, []int{3}, ReasonAtRisk},
		{"infeasible", State{Pools: []PoolState{batchPool(3)},
			Jobs: jobs{job("a", 4*time.Hour, 30)}},
			[]int{0}, ReasonNone},
		{"infeasible beside feasible", State{Pools: []PoolState{batchPool(3)},
			Jobs: jobs{job("a", 4*time.Hour, 30), job("b", 3*time.Hour+7*time.Minute, 3)}},
			[]int{1}, ReasonDeadline},
		{"at least", State{Pools: []PoolState{func() PoolState {
			p := batchPool(4)
			p.Min = 2
			return p
		}()}}, []int{2}, ReasonMinimum},
		{"start_by soon", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, StartBy: noon.Add(5 * time.Minute),
				Deadline: noon.Add(24 * time.Hour), Lines: 1, Work: hours(1)}}}, []int{1},
			ReasonStartBy},
		{"start_by later", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, StartBy: noon.Add(time.Hour),
				Deadline: noon.Add(24 * time.Hour), Lines: 1, Work: hours(1)}}}, []int{0},
			ReasonNone},
		{"unknown lines", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(5 * time.Hour), Lines: 1,
				Work: hours(2.6)}}}, []int{1}, ReasonLearning},
		{"unknown lines with time left", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(8 * time.Hour), Lines: 1,
				Work: hours(2.6)}}}, []int{0}, ReasonNone},
		{"lines that may be long", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(5 * time.Hour), Lines: 1,
				Work: hours(0.1), Most: hours(15.6)}}}, []int{1}, ReasonLearning},
		{"lines that may be long, with time left", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(8 * time.Hour), Lines: 1,
				Work: hours(0.1), Most: hours(15.6)}}}, []int{0}, ReasonNone},
		{"lines that may take as long to measure", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(8 * time.Hour), Lines: 1,
				Work: hours(0.1), Most: hours(15.6), MaxOutput: 200_000}}}, []int{1},
			ReasonLearning},
		{"lines that are known not to be long", State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(5 * time.Hour), Lines: 1,
				Work: hours(0.1), Most: hours(15.6), MaxOutput: 200_000, Answered: 50}}},
			[]int{0}, ReasonNone},
		{"unknown lines beside traffic", State{Pools: []PoolState{with(chatPool(10, 4), 4)},
			Jobs: jobs{{Key: batch("a"), Created: noon, Deadline: noon.Add(5 * time.Hour), Lines: 1,
				Work: hours(2.6)}}}, []int{4}, ReasonInteractive},
		{"unknown traffic", State{Pools: []PoolState{func() PoolState {
			p := with(chatPool(10, 4), 3)
			p.Interactive.Rate = math.NaN()
			return p
		}()}}, []int{3}, ReasonHolding},
		{"unknown capacity of a replica", State{Pools: []PoolState{func() PoolState {
			p := with(chatPool(10, 4), 3)
			p.Interactive.PerReplica, p.Engine = 0, flowcontrol.Engine{}
			return p
		}()}}, []int{3}, ReasonHolding},
		{"traffic", State{Pools: []PoolState{chatPool(10, 4)}}, []int{4}, ReasonInteractive},
		{"traffic leaves enough", State{Pools: []PoolState{with(chatPool(10, 4), 4)},
			Jobs: jobs{job("a", 4*time.Hour, 4)}}, []int{4}, ReasonInteractive},
		{"traffic leaves too little", State{Pools: []PoolState{with(chatPool(20, 4), 4)},
			Jobs: jobs{job("a", 4*time.Hour, 20)}}, []int{6}, ReasonDeadline},
		{"too much traffic", State{Pools: []PoolState{with(chatPool(3, 4), 3)}}, []int{3},
			ReasonMaximum},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := build(t).Step(noon, test.state)
			for i, n := range test.want {
				if got := d.Pools[i]; got.Replicas != n || i == 0 && got.Reason != test.reason {
					t.Errorf("%s: %d replicas for %q, want %d for %q (%+v)", got.Pool, got.Replicas,
						got.Reason, n, test.reason, got.Terms)
				}
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	pool := batchPool(4)
	d := build(t).Step(noon, State{Pools: []PoolState{pool}, Jobs: jobs{
		job("lost", 2*time.Hour, 9), job("fine", time.Hour, 1), job("close", 6*time.Hour, 21),
		{Key: batch("free"), Lines: 1, Work: 1},
	}})
	want := []Forecast{{Job: "fine", Verdict: OK}, {Job: "lost", Verdict: Infeasible},
		{Job: "close", Verdict: AtRisk}, {Job: "free"}}
	if len(d.Jobs) != len(want) {
		t.Fatalf("verdicts %+v, want %+v", d.Jobs, want)
	}
	for i, f := range d.Jobs {
		deadline, dated := map[string]time.Duration{"fine": time.Hour, "lost": 2 * time.Hour,
			"close": 6 * time.Hour}[f.Job]
		if f.Job != want[i].Job || f.Verdict != want[i].Verdict {
			t.Errorf("verdict %d is %+v, want %+v", i, f, want[i])
		}
		if dated && f.Finish.After(noon.Add(deadline)) != (f.Verdict == Infeasible) {
			t.Errorf("%s, %s, has the forecast finish %s", f.Job, f.Verdict, f.Finish.Sub(noon))
		}
	}
}

// A lost replica changes the verdict at the next step, and so does a higher maximum.
func TestVerdictsFollowEventsAtOnce(t *testing.T) {
	c := build(t)
	s := State{Pools: []PoolState{with(batchPool(4), 4)}, Jobs: jobs{job("a", 2*time.Hour, 6.9)}}
	if d := c.Step(noon, s); d.Jobs[0].Verdict != OK {
		t.Fatalf("at first %+v", d.Jobs[0])
	}
	s.Pools[0].Max = 3
	s.Pools[0].Replicas = s.Pools[0].Replicas[:3]
	if d := c.Step(noon.Add(time.Second), s); d.Jobs[0].Verdict != Infeasible ||
		d.Jobs[0].Finish.Before(s.Jobs[0].Deadline) {
		t.Errorf("with three of four %+v, want infeasible", d.Jobs[0])
	}
	s.Pools[0].Max = 4
	if d := c.Step(noon.Add(2*time.Second), s); d.Jobs[0].Verdict == Infeasible ||
		d.Pools[0].Replicas != 4 {
		t.Errorf("with another to be had %+v %+v", d.Jobs[0], d.Pools[0])
	}
}

// From zero, a replica is requested at the latest moment at which one suffices. It is removed when
// all work is done.
func TestFromZero(t *testing.T) {
	cfg := DefaultConfig()
	l := &simulation{t: t, controller: build(t), cold: 3 * time.Minute,
		state: State{Pools: []PoolState{batchPool(4)},
			Jobs: jobs{job("a", 12*time.Hour, 3)}}}
	var begun, gone time.Time
	changes := 0
	before := 0
	l.onStep = func(d Decision) {
		n := d.Pools[0].Replicas
		if n != before {
			changes++
			before = n
		}
		if n == 1 && begun.IsZero() {
			begun = l.now
		}
		if n == 0 && !begun.IsZero() && gone.IsZero() {
			gone = l.now
		}
	}
	l.run(noon.Add(13 * time.Hour))
	latest := noon.Add(12*time.Hour - 3*time.Hour - 3*time.Minute - cfg.Deadline.Guard)
	if begun.After(latest) || begun.Before(latest.Add(-5*time.Minute)) {
		t.Errorf("requested at %s, want shortly before %s", begun.Sub(noon), latest.Sub(noon))
	}
	if changes != 2 || gone.Sub(noon) > 12*time.Hour+cfg.Down.BatchHold {
		t.Errorf("%d changes, removed at %s", changes, gone.Sub(noon))
	}
}

// LatestStart is when the first replica is requested.
func TestLatestStart(t *testing.T) {
	c := build(t)
	s := State{Pools: []PoolState{batchPool(4)}, Jobs: jobs{job("a", 12*time.Hour, 3)}}
	at := c.Step(noon, s).Pools[0].Terms.LatestStart
	if got := build(t).Step(at.Add(-10*time.Minute), s).Pools[0].Replicas; got != 0 {
		t.Errorf("%d replicas before %s", got, at)
	}
	if got := build(t).Step(at.Add(10*time.Minute), s).Pools[0].Replicas; got != 1 {
		t.Errorf("%d replicas after %s", got, at)
	}
}

// Replicas that may be reclaimed get work with time left. Tight work gets the others.
func TestSpot(t *testing.T) {
	spot, sure := batchPool(5), batchPool(5)
	spot.Name, spot.Price, spot.Reclaim = "spot", 0.4, 0.05
	sure.Name, sure.Price = "sure", 1
	long := State{Pools: []PoolState{sure, spot}, Jobs: jobs{job("a", 4*time.Hour, 9.5)}}
	d := build(t).Step(noon, long)
	if a, b := wanted(d, "spot").Replicas, wanted(d, "sure").Replicas; a != 2 || b != 0 {
		t.Errorf("with time: %d spot and %d sure, want 2 and 0", a, b)
	}
	tight := State{Pools: []PoolState{sure, spot}, Jobs: jobs{job("a", 30*time.Minute, 3.9)}}
	d = build(t).Step(noon, tight)
	if b := wanted(d, "sure").Replicas; b != 5 {
		t.Errorf("without: %d sure, want all 5", b)
	}
	spot.Reclaim = 0.7
	d = build(t).Step(noon, State{Pools: []PoolState{sure, spot},
		Jobs: jobs{job("a", 4*time.Hour, 9.5)}})
	if a, b := wanted(d, "spot").Replicas, wanted(d, "sure").Replicas; a != 0 || b != 2 {
		t.Errorf(
			"with seven in ten reclaimed: %d spot and %d sure, want 0 and 2: "+
				"the harvest of spot costs more",
			a, b)
	}
}

// A replica that takes too long to start is given up and does not count as starting.
func TestGiveUp(t *testing.T) {
	c := build(t)
	p := batchPool(2)
	p.Replicas = []Replica{{ID: "stuck", Phase: Starting, Since: noon}}
	s := State{Pools: []PoolState{p}, Jobs: jobs{job("a", 100*time.Minute, 1.5)}}
	if d := c.Step(noon.Add(8*time.Minute), s); len(d.Pools[0].GiveUp) != 0 {
		t.Errorf("given up after 8 minutes: %+v", d.Pools[0])
	}
	d := c.Step(noon.Add(10*time.Minute), s)
	if !slices.Equal(d.Pools[0].GiveUp, []string{"stuck"}) {
		t.Errorf("not given up after 10 minutes: %+v", d.Pools[0])
	}
	if c.Step(noon.Add(11*time.Minute), s).Pools[0].Terms.ColdStart <= 3*time.Minute {
		t.Error("the start that was given up does not count as a measurement")
	}
}

// Close to a deadline, replicas are kept while they have lines in flight, though nothing is bought
// any more.
func TestReplicasAreKeptUntilTheirLinesAreAnswered(t *testing.T) {
	p := with(batchPool(9), 3)
	p.Replicas[0].Progress, p.Replicas[2].Progress = 5, 3
	c := build(t, func(c *Config) { c.Down.BatchHold, c.Down.Share = 0, 1 })
	d := c.Step(noon, State{Pools: []PoolState{p}, Jobs: jobs{job("a", 6*time.Minute, 0.02)}})
	if w := d.Pools[0]; w.Replicas != 2 || w.Reason != ReasonPaid ||
		!slices.Equal(w.Drain, []string{"batch-01"}) {
		t.Errorf("%+v", w)
	}
}

// The last lines of a job may take as long as its longest one.
func TestLongestLine(t *testing.T) {
	j := job("a", 3*time.Hour+19*time.Minute, 3)
	if n := build(t).Step(noon, State{Pools: []PoolState{batchPool(4)},
		Jobs: jobs{j}}).Pools[0].Replicas; n != 0 {
		t.Errorf("%d replicas with 12 minutes to spare", n)
	}
	j.Longest = 10_000 // more than 13 minutes at 80 ms a token
	if n := build(t).Step(noon, State{Pools: []PoolState{batchPool(4)},
		Jobs: jobs{j}}).Pools[0].Replicas; n != 1 {
		t.Errorf("%d replicas with less to spare than a line takes", n)
	}
}

// A pool without work drains all replicas at once: first those that are not ready, then those with
// the least progress. Reported includes the draining ones.
func TestDrain(t *testing.T) {
	p := with(batchPool(9), 3)
	p.Replicas[0].Progress, p.Replicas[1].Progress, p.Replicas[2].Progress = 5, 0, 3
	p.Replicas = append(p.Replicas, Replica{ID: "young", Phase: Starting, Since: noon},
		Replica{ID: "leaving", Phase: Draining, Since: noon})
	c := build(t)
	d := c.Step(noon, State{Pools: []PoolState{p}})
	if w := d.Pools[0]; w.Replicas != 0 || w.Reported != 1 ||
		!slices.Equal(w.Drain, []string{"young", "batch-01", "batch-02", "batch-00"}) {
		t.Errorf("%+v", w)
	}
}

// Replicas are removed after the hold time, and only some per minute.
func TestShrinkSlowly(t *testing.T) {
	l := &simulation{t: t, controller: build(t), cold: time.Minute,
		state: State{Pools: []PoolState{with(chatPool(30, 20), 20)}}}
	l.run(noon.Add(20 * time.Minute))
	l.state.Pools[0].Interactive.Rate /= 4
	begin, before := l.now, 20
	var cut time.Time
	l.onStep = func(d Decision) {
		n := d.Pools[0].Replicas
		if n < before {
			if l.now.Sub(begin) < 10*time.Minute {
				t.Errorf("%d replicas after %s", n, l.now.Sub(begin))
			}
			if !cut.IsZero() && l.now.Sub(cut) < time.Minute || before-n > 2 {
				t.Errorf("from %d to %d within %s", before, n, l.now.Sub(cut))
			}
			cut = l.now
		}
		if n > before {
			t.Errorf("from %d up to %d", before, n)
		}
		before = n
	}
	l.run(noon.Add(3 * time.Hour))
	if before > 8 {
		t.Errorf("still %d after hours of a quarter of the traffic", before)
	}
}

// Long lines take more of the KV cache, so replicas do their work more slowly, and one is started
// earlier to measure them.
func TestLongLinesAreSlower(t *testing.T) {
	slower := func(kv, output int) float64 {
		p, cfg := batchPool(4), DefaultConfig()
		p.Engine.KVTokens = kv
		p.Unshared = true
		o := outlook{cfg: &cfg, future: &future{pools: []poolFuture{{pool: &p,
			replica: newReplica(&p, &cfg.Harvest, 1)}}}}
		const lines = 1000
		return o.slower(&plan.Demand{Lines: lines, MaxOutput: float64(output),
			Most: lines * (200 + 0.15*float64(output))})
	}
	if got := slower(0, 0); got != 1 {
		t.Errorf("lines of unknown length are %v times slower, want 1", got)
	}
	short, long, many := slower(440_000, 255), slower(440_000, 8000), slower(4_000_000, 8000)
	if long < 1.3*short || many >= long {
		t.Errorf("lines of 255 tokens are %v times slower, of 8000 %v, with more KV %v", short,
			long, many)
	}
}
