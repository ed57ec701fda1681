// Package flowcontroltest checks that a flow-control policy keeps the contract of
// flowcontrol.Controller. It also has what tests of policies share: a Pool that feeds a controller,
// and Mistakes that make a controller wrong on purpose.
package flowcontroltest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Noon is when the suite's time begins.
var Noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// Limits are bounds that a controller was configured with. Nothing it grants may exceed them.
type Limits struct {
	PerRunner int // 0: the policy never starts anything
	PerPool   int // 0: no limit
}

// TestController checks the controllers that build returns. Each call returns a new one of the same
// configuration, with the limits and of a policy that needs nothing but needs.
func TestController(
	t *testing.T, limits Limits, needs flowcontrol.Needs, build func() flowcontrol.Controller,
) {
	t.Helper()

	t.Run("random runs keep the contract", func(t *testing.T) {
		for seed := range uint64(20) {
			r := newRun(t, limits, needs, build(), seed)
			for range 500 {
				r.step()
			}
		}
	})

	t.Run("the same run gives the same allowances", func(t *testing.T) {
		one, other := newRun(t, limits, needs, build(), 1), newRun(t, limits, needs, build(), 1)
		for range 500 {
			one.step()
			other.step()
			if !reflect.DeepEqual(one.last, other.last) {
				t.Fatalf("got %+v, in the other run %+v", other.last, one.last)
			}
		}
	})

	t.Run("observations are not kept", func(t *testing.T) {
		one, other := newRun(t, limits, needs, build(), 1), newRun(t, limits, needs, build(), 1)
		other.wipes = true
		for range 500 {
			one.step()
			other.step()
			if !reflect.DeepEqual(one.last, other.last) {
				t.Fatalf("got %+v once an observation's memory is used again, want %+v",
					other.last, one.last)
			}
		}
	})

	t.Run("a pool without runners has that reason", func(t *testing.T) {
		a := build().Allowance(Noon)
		if len(a.Runners) != 0 || a.Reason != flowcontrol.ReasonNoRunner {
			t.Errorf("got %+v, want no runner and that reason", a)
		}
	})

	t.Run("a new runner may start something soon", func(t *testing.T) {
		c := build()
		if !c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}}) {
			t.Error("joining changes nothing")
		}
		a := c.Allowance(opened(t, c))
		if starts := a.Runners[0].Lines > 0 && a.Pool > 0; starts != (limits.PerRunner > 0) {
			t.Errorf("got %+v with %+v, want at least one line unless none may start", a, limits)
		}
		if c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}}) {
			t.Error("joining twice changes something")
		}
	})

	t.Run("retry-after holds to its end and no longer", func(t *testing.T) {
		if limits.PerRunner == 0 {
			t.Skip("nothing starts in any case")
		}
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		if !c.Observe(Noon, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"},
			RetryAfter: 30 * time.Second}) {
			t.Error("a shed with Retry-After changes nothing")
		}
		// shortens nothing
		c.Observe(Noon.Add(time.Second), &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"},
			RetryAfter: time.Second})
		// neither does this
		c.Observe(Noon.Add(time.Second), &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"}})
		for _, test := range []struct {
			after time.Duration
			held  bool
		}{{0, true}, {2 * time.Second, true}, {30*time.Second - 1, true}, {30 * time.Second, false},
			{time.Hour, false}} {
			now := Noon.Add(test.after)
			a := c.Allowance(now)
			if held := a.Runners[0].Lines == 0; held != test.held {
				t.Errorf("after %v: %+v, held should be %v", test.after, a, test.held)
			}
			if test.held && (a.Until.IsZero() || a.Until.After(Noon.Add(30*time.Second)) ||
				a.Runners[0].Reason != flowcontrol.ReasonRetryAfter) {
				t.Errorf("after %v: %+v, want retry_after until 30s at most", test.after, a)
			}
			if !test.held && !a.Until.IsZero() && !a.Until.After(now) {
				t.Errorf("after %v: ask again at %v, which is past", test.after, a.Until)
			}
		}
	})

	t.Run("a shed without retry-after is followed by a pause", func(t *testing.T) {
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		now := opened(t, c)
		c.Observe(now, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"}})
		if a := c.Allowance(now); a.Runners[0].Lines != 0 || !a.Until.After(now) {
			t.Errorf("got %+v, want a pause with an end", a)
		}
		if a := c.Allowance(now.Add(flowcontrol.PauseAfterShed)); limits.PerRunner > 0 &&
			a.Runners[0].Lines < 1 {
			t.Errorf("got %+v, want lines again after the pause", a)
		}
	})

	t.Run("a retry-after that is too long is cut", func(t *testing.T) {
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		c.Observe(Noon, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"},
			RetryAfter: 1<<63 - 1})
		if a := c.Allowance(Noon.Add(flowcontrol.LongestHold)); limits.PerRunner > 0 &&
			a.Runners[0].Lines < 1 {
			t.Errorf("got %+v after the longest hold, want lines again", a)
		}
	})

	t.Run("a runner that turns bad and well again gets lines again", func(t *testing.T) {
		c := build()
		for _, r := range []string{"bad", "good"} {
			c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: r}})
		}
		now := opened(t, c)
		start := func(runner string) {
			c.Observe(now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: runner,
				InFlight: 1}})
		}
		fail := func(runner string) {
			start(runner)
			c.Observe(now, &flowcontrol.Broken{Load: flowcontrol.Load{Runner: runner}})
		}
		answer := func(runner string) {
			start(runner)
			c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: runner},
				Latency: time.Second})
		}
		lines := func(i int) int {
			a := c.Allowance(now)
			if a.Pool < 1 {
				return 0
			}
			return a.Runners[i].Lines
		}
		// As the planner does it: many fail at once, then single lines are tried.
		for range 20 {
			fail("bad")
		}
		for range 10 {
			now = now.Add(30 * time.Second)
			fail("bad")
			answer("good")
			if limits.PerRunner > 0 && lines(1) < 1 {
				t.Fatalf("the good runner gets no line while another is bad: %+v",
					c.Allowance(now))
			}
		}
		now = now.Add(2 * time.Minute)
		for range 60 {
			now = now.Add(time.Second)
			answer("bad")
			answer("good")
		}
		if limits.PerRunner > 0 && lines(0) < 1 && lines(1) < c.Allowance(now).Pool {
			t.Errorf("got %+v a minute after the runner is well again, want lines",
				c.Allowance(now))
		}
	})

	t.Run("a runner that left is forgotten", func(t *testing.T) {
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		fresh := c.Allowance(Noon).Runners[0]
		c.Observe(Noon, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"},
			RetryAfter: time.Minute})
		if !c.Observe(Noon, &flowcontrol.RunnerLeft{Runner: "r"}) {
			t.Error("leaving changes nothing")
		}
		gone := flowcontrol.Load{Runner: "r"}
		for _, o := range []flowcontrol.Observation{&flowcontrol.Answered{Load: gone},
			&flowcontrol.Shed{Load: gone}, &flowcontrol.Broken{Load: gone},
			&flowcontrol.RunnerLeft{Runner: "r"}} {
			if c.Observe(Noon, o) {
				t.Errorf("%T of a runner that left changes something", o)
			}
		}
		if a := c.Allowance(Noon); len(a.Runners) != 0 {
			t.Errorf("got %+v, want no runner", a)
		}
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		if got := c.Allowance(Noon).Runners[0]; got != fresh {
			t.Errorf("back again: %+v, want it as new: %+v", got, fresh)
		}
	})

	t.Run("readings change nothing unless the policy declares them", func(t *testing.T) {
		if needs.Readings {
			t.Skip("it declares them")
		}
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		full := flowcontrol.NoReading(flowcontrol.Metrics, Noon)
		full.Running, full.Waiting, full.KVUsed = 1000, 1000, 1
		if c.Observe(Noon, &flowcontrol.Read{Runner: "r", Reading: &full}) {
			t.Error("a reading changes something")
		}
	})

	testLearner(t, limits, needs, build)

	t.Run("unknown observations are ignored", func(t *testing.T) {
		c := build()
		c.Observe(Noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		if c.Observe(Noon, unknown{&flowcontrol.Shed{Load: flowcontrol.Load{Runner: "r"}}}) ||
			c.Observe(Noon, unknown{&flowcontrol.DeadlineDemand{Lines: 100}}) {
			t.Error("an unknown observation changes something")
		}
	})
}

// unknown is an observation of a type that no policy knows.
type unknown struct{ flowcontrol.Observation }

// opened returns when a pool that was new at Noon, and of which nothing is observed, may start
// something, or when it is clear that it never will. A policy may watch the pool for a minute
// before, in which it has to say that it is watching and when to ask again.
func opened(t *testing.T, c flowcontrol.Controller) time.Time {
	t.Helper()
	now := Noon
	for {
		a := c.Allowance(now)
		if r := a.Runners[0]; r.Lines > 0 || r.Reason != flowcontrol.ReasonWatching {
			return now
		}
		if !a.Until.After(now) || a.Until.After(Noon.Add(time.Minute)) {
			t.Fatalf("got %+v at %v, want lines within a minute of noon", a, now)
		}
		now = a.Until
	}
}

// run is a pool that starts what it is allowed to, with runners that join, leave, shed, break and
// answer at random.
type run struct {
	t          *testing.T
	limits     Limits
	needs      flowcontrol.Needs
	controller flowcontrol.Controller
	random     *rand.Rand
	now        time.Time
	inFlight   map[string]int // by runner; a runner that is not in it has left
	heldUntil  map[string]time.Time
	last       flowcontrol.Allowance
	wipes      bool // sets an observation to zero once the controller has it
}

func newRun(
	t *testing.T, limits Limits, needs flowcontrol.Needs, c flowcontrol.Controller, seed uint64,
) *run {
	r := &run{t: t, limits: limits, needs: needs, controller: c,
		random:   rand.New(rand.NewPCG(seed, 0)),
		now:      Noon,
		inFlight: map[string]int{}, heldUntil: map[string]time.Time{}}
	r.check(true)
	return r
}

// step makes one random thing happen.
func (r *run) step() {
	r.now = r.now.Add(time.Duration(r.random.ExpFloat64() * float64(300*time.Millisecond)))
	id := fmt.Sprintf("runner-%d", r.random.IntN(5))
	var o flowcontrol.Observation
	busy, joined := r.inFlight[id]
	carried := func() flowcontrol.Load {
		return flowcontrol.Load{Runner: id, InFlight: r.inFlight[id]}
	}
	switch dice := r.random.IntN(100); {
	case !joined:
		r.inFlight[id] = 0
		o = &flowcontrol.RunnerJoined{Load: carried()}
	case dice < 2:
		o = &flowcontrol.RunnerLeft{Runner: id}
		delete(r.inFlight, id)
		delete(r.heldUntil, id)
	case dice < 60 || busy == 0:
		if !r.mayStart(id) {
			return
		}
		r.inFlight[id]++
		o = &flowcontrol.Started{Load: carried()}
	default:
		r.inFlight[id]--
		switch {
		case dice < 90:
			o = &flowcontrol.Answered{Load: carried(),
				Latency: time.Duration(r.random.IntN(30_000)) * time.Millisecond}
		case dice < 93:
			o = &flowcontrol.Broken{Load: carried()}
		case dice < 96:
			o = &flowcontrol.Evicted{Load: carried()}
		default:
			shed := &flowcontrol.Shed{Load: carried(),
				RetryAfter: time.Duration(r.random.IntN(4)) * time.Second}
			if until := r.now.Add(shed.RetryAfter); until.After(r.heldUntil[id]) {
				r.heldUntil[id] = until
			}
			o = shed
		}
	}
	changed := r.controller.Observe(r.now, o)
	if r.wipes {
		reflect.ValueOf(o).Elem().SetZero()
	}
	r.check(changed)
}

func (r *run) total() (sum int) {
	for _, n := range r.inFlight {
		sum += n
	}
	return sum
}

func (r *run) mayStart(id string) bool {
	a := r.controller.Allowance(r.now)
	i := slices.IndexFunc(a.Runners, func(g flowcontrol.RunnerAllowance) bool {
		return g.Runner == id
	})
	return i >= 0 && r.inFlight[id] < a.Runners[i].Lines && r.total() < a.Pool
}

// check checks the allowance after something happened. changed is what Observe returned.
func (r *run) check(changed bool) {
	r.t.Helper()
	a := r.controller.Allowance(r.now)
	a.Runners = slices.Clone(a.Runners)
	if w, warns := r.controller.(flowcontrol.Warner); warns {
		for _, warning := range w.Warnings(r.now) {
			if warning.Code == "" || warning.Text == "" {
				r.t.Fatalf("warning %+v, want a code and a text", warning)
			}
		}
	}
	if again := r.controller.Allowance(r.now); !reflect.DeepEqual(a, again) {
		r.t.Fatalf("allowance %+v, asked again %+v", a, again)
	}
	valid := r.last.Until.IsZero() || r.now.Before(r.last.Until)
	if !changed && valid && !reflect.DeepEqual(a, r.last) {
		r.t.Fatalf(
			"no change was reported and time was not up, but the allowance went from %+v to %+v",
			r.last, a)
	}
	r.last = a
	if !a.Until.IsZero() && !a.Until.After(r.now) {
		r.t.Fatalf("ask again at %v, which is not after %v", a.Until, r.now)
	}
	if a.Streams > 0 && !r.needs.Streams {
		r.t.Fatalf("%d lines are to be streamed, but the policy declares no streams", a.Streams)
	}
	if len(a.Runners) != len(r.inFlight) {
		r.t.Fatalf("%d runners, want %d: %+v", len(a.Runners), len(r.inFlight), a)
	}
	if r.limits.PerPool > 0 && (a.Pool > r.limits.PerPool || r.total() > r.limits.PerPool) {
		r.t.Fatalf("pool allowance %d, in flight %d, want no more than %d", a.Pool, r.total(),
			r.limits.PerPool)
	}
	sum := 0
	for i, g := range a.Runners {
		_, joined := r.inFlight[g.Runner]
		switch {
		case i > 0 && a.Runners[i-1].Runner >= g.Runner:
			r.t.Fatalf("runners are not sorted: %+v", a)
		case !joined:
			r.t.Fatalf("%s has left, but is granted %+v", g.Runner, g)
		case g.Lines < 0 || g.Lines > r.limits.PerRunner:
			r.t.Fatalf("%+v, want between 0 and %d", g, r.limits.PerRunner)
		case r.now.Before(r.heldUntil[g.Runner]) && g.Lines != 0:
			r.t.Fatalf("%+v, but it asked for nothing until %v, now is %v", g,
				r.heldUntil[g.Runner], r.now)
		case g.Reason == flowcontrol.ReasonNone:
			r.t.Fatalf("%+v has no reason", g)
		}
		sum += g.Lines
	}
	if sum > a.Pool {
		r.t.Fatalf("runners are granted %d lines, the pool %d", sum, a.Pool)
	}
	if a.Reason == flowcontrol.ReasonNone {
		r.t.Fatalf("%+v has no reason", a)
	}
}
