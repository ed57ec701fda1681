package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// placing is a planner whose runners, each named as its pool, carry two lines of m.
type placing struct {
	*Planner
	t      *testing.T
	number int
	on     map[string]int   // lines in flight, by batch and runner
	starts map[string]Start // last one, by batch
	evicts []Start
}

func newPlacing(t *testing.T, pools ...string) *placing {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	p := &placing{t: t, on: map[string]int{}, starts: map[string]Start{},
		Planner: newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(),
			Flow: flow, Random: rand.New(rand.NewPCG(1, 2))})}
	for _, pool := range pools {
		p.up(pool, false)
	}
	return p
}

func (p *placing) step(now time.Time, ev Event) Actions {
	did := p.Step(now, ev)
	for _, s := range did.Start {
		p.on[s.Key.Batch+" on "+s.Runner]++
		p.starts[s.Key.Batch] = s
	}
	p.evicts = append(p.evicts, did.Evict...)
	return did
}

func (p *placing) up(pool string, reserved bool) {
	p.step(noon, RunnerUp{Runner: "r" + pool, Pool: pool, Models: []string{"m"},
		Reserved: reserved})
}

// add adds a batch of so many lines, which are loaded.
func (p *placing) add(b Batch, lines int) {
	b.Tenant, b.Created = "t", noon.Add(time.Duration(p.number)*time.Second)
	p.number++
	b.Models = []ModelLines{{Model: "m", Lines: lines, PromptTokens: int64(10 * lines)}}
	p.step(noon, BatchPut{b})
	var loaded []Line
	for i := range lines {
		loaded = append(loaded, Line{Slot: i, PromptTokens: 10})
	}
	p.step(noon, Loaded{Key: JobKey{b.ID, "m"}, Lines: loaded})
}

func (p *placing) want(what string, want map[string]int) {
	p.t.Helper()
	for at, n := range want {
		if p.on[at] != n {
			p.t.Errorf("%s: %d lines started of %s, want %d: %v", what, p.on[at], at, n, p.on)
		}
	}
}

func TestBatchesUseTheirPools(t *testing.T) {
	p := newPlacing(t, "", "a", "b")
	p.up("own", true)
	p.add(Batch{ID: "own", Pools: []string{"own"}}, 3)
	p.add(Batch{ID: "ab", Pools: []string{"b", "a"}}, 3)
	p.add(Batch{ID: "any"}, 9)
	p.add(Batch{ID: "none", Pools: []string{}, Nowhere: NoDeployment}, 1)
	p.want("at first", map[string]int{"own on rown": 2, "ab on rb": 2, "ab on ra": 1,
		"any on ra": 1, "any on r": 2, "any on rown": 0, "none on r": 0})
	if s, _ := p.Status(noon, "none"); s.Waiting != NoDeployment {
		t.Errorf("the batch without a pool waits for %q", s.Waiting)
	}
	p.add(Batch{ID: "excluded", Pools: []string{"gone"}, Nowhere: NoOpenPool}, 1)
	if s, _ := p.Status(noon, "excluded"); s.Waiting != NoOpenPool {
		t.Errorf("the batch that its profile excludes from pools waits for %q", s.Waiting)
	}
	p.step(noon, RunnerGone{Runner: "rown"})
	if s, _ := p.Status(noon, "own"); s.Waiting != NoRunner || !slices.Equal(s.Pools,
		[]string{"own"}) {
		t.Errorf("the batch whose pool has no runner waits for %q, pools %v", s.Waiting, s.Pools)
	}
	// A pool is bound to the template of the batch meanwhile, and one comes that it may use.
	p.step(noon, BatchPut{Batch{ID: "none", Tenant: "t", Created: noon, Pools: []string{"c"}}})
	p.up("c", true)
	p.want("with another pool", map[string]int{"none on rc": 1, "any on rc": 0})
	// It may use none any more: what is in flight goes on.
	p.step(noon, BatchPut{Batch{ID: "ab", Tenant: "t", Created: noon, Pools: []string{}}})
	p.step(noon, &Finished{Start: p.starts["ab"], Outcome: Succeeded})
	p.want("in the end", map[string]int{"ab on rb": 2, "ab on ra": 1})
}

// Batches that prefer pools in different orders each get their first choice, while it has room.
func TestPreferencesDiffer(t *testing.T) {
	p := newPlacing(t, "a", "b", "c")
	p.add(Batch{ID: "ab", Pools: []string{"a", "b"}}, 1)
	p.add(Batch{ID: "ba", Pools: []string{"b", "a"}}, 1)
	p.add(Batch{ID: "ca", Pools: []string{"c", "a"}}, 3)
	p.want("with room", map[string]int{"ab on ra": 1, "ba on rb": 1, "ca on rc": 2, "ca on ra": 1})
	p.add(Batch{ID: "full", Pools: []string{"c", "a", "b"}}, 1)
	p.want("with a second choice", map[string]int{"full on rb": 1})
}

// A line of a preemptible batch gives way to one that goes before, and is charged no attempt.
func TestPreemption(t *testing.T) {
	for _, c := range []struct {
		what          string
		first, second Batch
		evicted       int
	}{
		{"a higher priority", Batch{Preemptible: true}, Batch{Priority: 1}, 1},
		{"the same priority", Batch{Preemptible: true}, Batch{}, 0},
		{"not preemptible", Batch{}, Batch{Priority: 1}, 0},
		{"an urgent batch", Batch{Preemptible: true},
			Batch{Window: time.Hour, Deadline: noon.Add(time.Second)}, 1},
	} {
		p := newPlacing(t, "a")
		c.first.ID, c.second.ID = "first", "second"
		p.add(c.first, 9)
		p.add(c.second, 1)
		if len(p.evicts) != c.evicted {
			t.Errorf("%s: %d lines are evicted, want %d", c.what, len(p.evicts), c.evicted)
		}
		for _, e := range p.evicts {
			if e.Key.Batch != "first" {
				t.Errorf("%s: a line of %s is evicted", c.what, e.Key.Batch)
			}
			start := p.starts["first"]
			did := p.step(noon, &Finished{Start: start, Outcome: Evicted})
			if did.Verdict != Retry {
				t.Errorf("%s: the verdict on an evicted line is %v", c.what, did.Verdict)
			}
			p.want(c.what, map[string]int{"second on ra": 1})
			p.step(noon.Add(time.Minute), &Finished{Start: p.starts["second"], Outcome: Succeeded})
			if again := p.starts["first"]; again.Slot != start.Slot || again.Attempt != 1 {
				t.Errorf("%s: then slot %d starts, attempt %d, want %d, 1", c.what, again.Slot,
					again.Attempt, start.Slot)
			}
		}
	}
}

// The pauses of a batch's own list come in order, and the last one is repeated.
func TestOwnBackoff(t *testing.T) {
	b := Batch{RetryAttempts: 9, RetryOn: []int{500},
		Backoff: []time.Duration{5 * time.Second, 30 * time.Second}}
	for tries, want := range []time.Duration{5 * time.Second, 30 * time.Second, 30 * time.Second} {
		got := decideRetry(DefaultConfig().Retry, &b, line{tries: uint16(tries)}, shedRecord{},
			Failed, 500, 0)
		if got.pause != want || !got.again {
			t.Errorf("after %d retries: pause %v, again %v, want %v", tries, got.pause, got.again,
				want)
		}
	}
}

// Lines that start again when it is their tenant's turn are not evicted, as often as they start.
func TestPreemptionIsNotInVain(t *testing.T) {
	for _, c := range []struct {
		tenant  string // of the batch with the lower priority
		evicted int
	}{{"a", 1}, {"b", 0}} {
		flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
		w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
		w.runnerUp("r1", "m1")
		day := noon.Add(24 * time.Hour)
		w.put(Batch{ID: "low", Tenant: c.tenant, Created: noon, Preemptible: true, Deadline: day,
			Window: 24 * time.Hour}, map[string][]int{"m1": {50, 50}})
		w.load(0, 100)
		w.put(Batch{ID: "high", Tenant: "a", Created: noon, Priority: 50, Deadline: day,
			Window: 24 * time.Hour}, map[string][]int{"m1": {50, 50}})
		evicted, done := 0, map[string]int{}
		for evicted+done["low"]+done["high"] < 40 {
			for len(w.claims) > 0 {
				w.load(0, 100)
			}
			w.pass(time.Second)
			if f := w.requests[0]; f.evicted {
				evicted++
				w.finish(f, Evicted, 0, 0)
			} else {
				done[f.Key.Batch]++
				w.finish(f, Succeeded, 200, 0)
			}
		}
		if evicted != c.evicted || done["low"] == 0 {
			t.Errorf("tenants a and %s: %d lines are evicted, want %d; done are %v", c.tenant,
				evicted, c.evicted, done)
		}
	}
}

// A refusal of the only runner is tried again if its status is in the batch's list, though the
// runner has answered nothing well yet, and is final otherwise.
func TestFirstAnswerRefuses(t *testing.T) {
	for status, want := range map[int]Verdict{409: Retry, 404: Record} {
		p := newPlacing(t, "a")
		p.add(Batch{ID: "b", RetryAttempts: 2, RetryOn: []int{409},
			Backoff: []time.Duration{time.Second}}, 1)
		refused := func(now time.Time) Verdict {
			return p.step(now, &Finished{Start: p.starts["b"], Outcome: Refused,
				Status: status}).Verdict
		}
		if got := refused(noon); got != want {
			t.Errorf("the verdict on %d is %v, want %v", status, got, want)
		}
		if want == Record {
			continue
		}
		later := noon.Add(2 * time.Second)
		p.step(later, Tick{})
		if again := p.starts["b"]; again.Attempt != 2 {
			t.Errorf("after %d, attempt %d starts, want 2", status, again.Attempt)
		}
		if got := refused(later); got != Record {
			t.Errorf("the verdict on the last attempt is %v, want %v", got, Record)
		}
	}
}
