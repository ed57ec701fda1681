package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// outside is the runner of the fallback of the pool "gpus".
const outside = "gpus@fallback"

// withFallback returns a change of configurations: a request per runner of a pool, lines per runner
// of "gpus", and a fallback whose answers cost 1 for each token, up to a limit per day.
func withFallback(lines int, perDay float64) func(*Config, *flowcontrol.Config) {
	return func(c *Config, flow *flowcontrol.Config) {
		c.Inline.MaxRunning = 1
		own := aimd.DefaultConfig()
		own.Money = aimd.Money{PerDay: perDay, Input: 1e6, Output: 1e6}
		flow.Pools = map[string]flowcontrol.Config{
			outside: flowcontrol.DefaultConfig().Select(aimd.Name, own),
			"gpus":  flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: lines}),
		}
	}
}

func (u *users) upOutside(models ...string) {
	u.step(RunnerUp{Runner: outside, Pool: outside, Models: models, Reserved: true,
		Instead: "gpus"})
}

func (u *users) upIn(pool, runner string) {
	u.step(RunnerUp{Runner: runner, Pool: pool, Models: []string{"m"}})
}

// went reports whether a request was admitted on a runner, for the right reason.
func (u *users) went(id uint64, runner string) {
	u.t.Helper()
	a := u.admitted[id]
	if a.Runner != runner || (a.Why == Fallback) != (runner == outside) ||
		(a.Instead == "gpus") != (runner == outside) {
		u.t.Errorf("request %d got %+v (refused: %v), want %s", id, a, u.refused[id].Why, runner)
	}
}

func TestRequestsFallBack(t *testing.T) {
	u := newUsers(t, withFallback(1, 1e9))
	u.upOutside("m", "other")
	u.went(u.ask(flows.Standard, "chat"), outside) // the pool has no runner
	u.upIn("gpus", "a")
	first := u.ask(flows.Standard, "chat")
	u.went(first, "a")
	waits := u.ask(flows.Standard, "chat")
	u.pass(19 * time.Second)
	if a, ok := u.admitted[waits]; ok {
		t.Fatalf("a request that may wait got %+v", a)
	}
	u.pass(time.Second)
	u.went(waits, outside)
	if a := u.admitted[waits]; a.Waited != 20*time.Second {
		t.Errorf("it has waited %v", a.Waited)
	}
	// A runner that refuses it has a place, but there is no other.
	u.end(first, Shed, 0)
	u.went(u.ask(flows.Standard, "chat", func(r *Request) { r.Avoid = []string{"a"} }), outside)
	// With another one, the pool comes first.
	u.upIn("gpus", "b")
	u.went(u.ask(flows.Standard, "chat", func(r *Request) { r.Avoid = []string{"a"} }), "b")
	u.went(u.ask(flows.Standard, "chat"), "a")
	outsideOnly := func(r *Request) { r.Outside, r.Avoid = true, []string{"a"} }
	u.went(u.ask(flows.Standard, "chat", outsideOnly), outside)
	if id := u.ask(flows.Standard, "chat", outsideOnly, func(r *Request) {
		r.Avoid = append(r.Avoid, outside)
	}); u.refused[id].ID == 0 {
		t.Errorf("a request that is only for a fallback: %+v", u.admitted[id])
	}
	// A fallback that has failed the request itself is not asked again.
	id := u.ask(flows.Standard, "chat", func(r *Request) {
		r.Avoid, r.Model = []string{outside}, "other"
	})
	if u.refused[id].Why != NoRunner {
		t.Errorf("a request that the fallback has failed: %+v", u.admitted[id])
	}
}

// Only requests that may use the pool use its fallback, as far as that serves their model.
func TestFallbacksAreForTheirPool(t *testing.T) {
	u := newUsers(t, withFallback(1, 1e9))
	u.upOutside("m")
	for name, change := range map[string]func(*Request){
		"another pool":  func(r *Request) { r.Pools = []string{"others"} },
		"another model": func(r *Request) { r.Model = "n" },
	} {
		if id := u.ask(flows.Standard, "chat", change); u.refused[id].Why != NoRunner {
			t.Errorf("%s: %+v", name, u.admitted[id])
		}
	}
	u.went(u.ask(flows.Standard, "chat", func(r *Request) { r.Pools = []string{"gpus"} }), outside)
	u.step(Drain{})
	if id := u.ask(flows.Standard, "chat"); u.refused[id].Why != Draining {
		t.Errorf("while draining: %+v", u.admitted[id])
	}
}

func TestFallbacksKeepTheirBudget(t *testing.T) {
	u := newUsers(t, withFallback(1, 150))
	u.upOutside("m")
	answer := func(id uint64) {
		u.step(&RequestEnded{ID: id, Outcome: Succeeded, PromptTokens: 100, OutputTokens: 50})
	}
	first := u.ask(flows.Standard, "chat", func(r *Request) { r.MaxTokens = 30 })
	u.went(first, outside)
	second := u.ask(flows.Standard, "chat", func(r *Request) { r.MaxTokens = 30 })
	u.went(second, outside) // 130 of 150 are charged
	third := u.ask(flows.Standard, "chat")
	if u.refused[third].Why != NoRunner {
		t.Errorf("beyond the budget: %+v, %+v", u.admitted[third], u.refused[third])
	}
	answer(first)
	status := func() FallbackStatus {
		all := u.p.Fallbacks(u.now)
		i := slices.IndexFunc(u.p.Pools(), func(s PoolStatus) bool { return s.Name == outside })
		return *all[i]
	}
	want := FallbackStatus{Instead: "gpus", Requests: 2, PromptTokens: 100, OutputTokens: 50,
		Spent: 280, PerDay: 150}
	if got := status(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	answer(second)

	// Other models are no other budget, nor is a restart.
	u.step(RunnerGone{outside})
	u.upOutside("m", "n")
	if got := status(); got.Spent != 300 || got.Requests != 2 {
		t.Errorf("with other models: %+v", got)
	}
	learned := u.p.Learned(u.now)
	next := newUsers(t, withFallback(1, 150))
	next.step(Recall{[]Recalled{{learned[0], 0}}})
	next.upOutside("m")
	if id := next.ask(flows.Standard, "chat"); next.refused[id].Why != NoRunner {
		t.Errorf("after a restart: %+v", next.admitted[id])
	}
	next.now = next.now.Add(24 * time.Hour)
	next.went(next.ask(flows.Standard, "chat"), outside)
}

// A stream that does not say its prompt's tokens is not free of them.
func TestStreamsOfFallbacksHaveTheirPrice(t *testing.T) {
	u := newUsers(t, withFallback(1, 1e9))
	u.upOutside("m")
	u.end(u.ask(flows.Standard, "chat"), Succeeded, 50)
	if got := u.p.Fallbacks(u.now)[0].Spent; got != 150 {
		t.Errorf("it costs %v, want 150", got)
	}
}

// A server that refuses a request is not asked for a while.
func TestFallbacksThatShed(t *testing.T) {
	u := newUsers(t, withFallback(1, 1e9))
	u.upOutside("m")
	id := u.ask(flows.Standard, "chat")
	u.step(&RequestEnded{ID: id, Outcome: Shed, Status: 429, RetryAfter: time.Minute})
	if id := u.ask(flows.Standard, "chat"); u.refused[id].Why != NoRunner {
		t.Errorf("in its pause: %+v", u.admitted[id])
	}
	u.pass(61 * time.Second)
	u.went(u.ask(flows.Standard, "chat"), outside)
}

// batch adds a batch whose lines are loaded.
func (u *users) batch(id string, lines int, pools []string) {
	u.step(BatchPut{Batch{ID: id, Tenant: "t", Created: u.now, Deadline: u.now.Add(time.Hour),
		Pools: pools, Models: []ModelLines{{Model: "m", Lines: lines, PromptTokens: 1000}}}})
	loaded := make([]Line, lines)
	for i := range loaded {
		loaded[i] = Line{Slot: i, PromptTokens: 10, MaxTokens: 10}
	}
	u.step(Loaded{Key: JobKey{id, "m"}, Lines: loaded})
}

// where counts the lines that started, by batch and runner.
func (u *users) where() map[string]int {
	by := map[string]int{}
	for _, s := range u.started {
		by[s.Key.Batch+" on "+s.Runner]++
	}
	return by
}

func TestLinesFallBack(t *testing.T) {
	u := newUsers(t, withFallback(2, 45))
	u.upOutside("m")
	u.upIn("gpus", "a")
	u.batch("late", 10, nil)
	u.batch("good", 10, nil)
	u.batch("elsewhere", 10, []string{"others"})
	u.step(Feasibility{Batch: "good"})
	u.step(Feasibility{Batch: "elsewhere", Infeasible: true})
	u.pass(time.Minute)
	if by := u.where(); by["late on a"]+by["good on a"] != 2 || len(u.started) != 2 {
		t.Fatalf("before a deadline is missed: %v", by)
	}
	u.started = nil
	u.step(Feasibility{Batch: "late", Infeasible: true})
	// Each is charged its prompt of 10, as long as no answer is known.
	if by := u.where(); by["late on "+outside] != 5 || len(u.started) != 5 {
		t.Fatalf("once a deadline is missed, within a budget of 45: %v", by)
	}
	sent := u.started
	u.started = nil
	for _, s := range sent[:4] { // each costs 2 instead
		u.step(&Finished{Start: s, Outcome: Succeeded, Status: 200, InputTokens: 1,
			OutputTokens: 1})
	}
	if by := u.where(); by["late on "+outside] == 0 {
		t.Errorf("with money left: %v", by)
	}
	u.started = nil
	u.step(Feasibility{Batch: "late"})
	u.pass(2 * time.Second)
	if len(u.started) > 0 {
		t.Errorf("once the deadline can be met again: %v", u.where())
	}
}

// While the pool has a free slot, its fallback gets no line, not even one that must go elsewhere.
func TestFallbacksWaitForTheirPool(t *testing.T) {
	u := newUsers(t, withFallback(3, 1e9))
	u.upOutside("m")
	u.upIn("gpus", "a")
	u.batch("late", 3, nil)
	u.step(Feasibility{Batch: "late", Infeasible: true})
	if by := u.where(); by["late on a"] != 3 {
		t.Fatalf("got %v", by)
	}
	u.step(RunnerGone{"a"})
	u.batch("later", 3, nil)
	u.step(Feasibility{Batch: "later", Infeasible: true})
	if by := u.where(); by["later on "+outside] != 3 {
		t.Errorf("without a runner: %v", by)
	}
}
