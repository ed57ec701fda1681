package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// decode reports tokens of the runner a that come after one another at a time, for a time.
func (u *users) decode(each, long time.Duration) {
	for range long / (100 * time.Millisecond) {
		u.now = u.now.Add(100 * time.Millisecond)
		gaps := int(100*time.Millisecond/each) * 4
		u.step(RequestsDecoded{Runner: "a", Tokens: gaps, Gaps: gaps,
			Time: time.Duration(gaps) * each})
		for len(u.evicted) > 0 {
			s := u.evicted[0]
			u.evicted = u.evicted[1:]
			at := slices.IndexFunc(u.started, func(x Start) bool { return x.number == s.number })
			u.step(&Finished{Start: u.started[at], Outcome: Evicted})
		}
	}
}

// Lines are evicted when requests with an objective are about to miss it, start again when there is
// room, and none runs while a request waits for the objective's sake.
func TestLinesYieldToAnObjective(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	u.step(BatchPut{Batch{ID: "b", Models: []ModelLines{{Model: "m", Lines: 1000,
		PromptTokens: 1000, MaxTokens: 10_000}}}})
	lines := make([]Line, 1000)
	for i := range lines {
		lines[i] = Line{Slot: i, PromptTokens: 1, MaxTokens: 10}
	}
	u.step(Loaded{Key: JobKey{"b", "m"}, Lines: lines})
	pool := u.p.pools[0]
	before := pool.inFlight
	u.ask(flows.Critical, "chat", func(r *Request) { r.Objective = 40 * time.Millisecond })
	u.decode(60*time.Millisecond, 3*time.Second)
	few := pool.inFlight
	if few == 0 || few > before*9/10 || float64(few) > pool.guard.bound {
		t.Fatalf("%d of %d lines run beside a late request, bound %.0f", few, before,
			pool.guard.bound)
	}
	u.decode(20*time.Millisecond, 10*time.Second)
	many := pool.inFlight
	if many <= few {
		t.Errorf("%d lines run when there is room again, %d before", many, few)
	}
	for range 2 * int(pool.guard.bound) {
		u.ask(flows.Standard, "other", func(r *Request) { r.PromptTokens = 0 })
	}
	u.decode(36*time.Millisecond, time.Second)
	if pool.inFlight > 0 || pool.requests.Waiting() == 0 {
		t.Errorf("%d lines run while %d requests wait", pool.inFlight, pool.requests.Waiting())
	}
	if why := pool.limitReason(); why != ObjectiveAtRisk {
		t.Errorf("lines wait because %q", why)
	}
}

// Requests without an objective start one after another beside those that have one, whose prompts
// would wait behind theirs in the engine.
func TestPromptsArePaced(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	long := func(r *Request) { r.PromptTokens = pacedPrompts }
	ids := []uint64{u.ask(flows.Standard, "other", long), u.ask(flows.Standard, "other", long)}
	if len(u.order) != 2 {
		t.Fatalf("%d requests started where none has an objective", len(u.order))
	}
	for _, id := range ids {
		u.step(RequestSpoke{ID: id})
	}
	promised := func(r *Request) { r.Objective, r.PromptTokens = time.Second, 10*pacedPrompts }
	u.ask(flows.Critical, "chat", promised)
	u.ask(flows.Critical, "chat", promised)
	if len(u.order) != 4 {
		t.Fatalf("%d requests started, want those with an objective at once", len(u.order))
	}
	for _, id := range u.order[2:] {
		u.step(RequestSpoke{ID: id})
	}
	for range 3 {
		u.ask(flows.Standard, "other", long)
	}
	for want := 5; want <= 7; want++ {
		if len(u.order) != want {
			t.Fatalf("%d requests started, want %d", len(u.order), want)
		}
		u.step(RequestSpoke{ID: u.order[want-1]})
	}
}
