package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A prompt that has waited long enough is taken to be computed, though nothing shows it.
func TestPromptsAreComputedUnseen(t *testing.T) {
	for _, test := range []struct {
		name string
		seen time.Time // the last metrics
		part float64   // of the engine's time in which prompts of lines are computed
	}{
		{"metrics that come rarely", noon, computedShare},
		{"no metrics", time.Time{}, blindlyComputedShare},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, runners := newPool(t, nil, "r")
			r := runners[0]
			r.interactive.seenAt = test.seen
			c.updateBacklog(noon, r)
			started := &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1,
				Prefilling: 4000}, PromptTokens: 5000, CachedTokens: 1000}
			r.backlog.observe(noon, started)
			r.own.prefilling = started.Prefilling
			if got := r.computedUnseen(); got != 0 {
				t.Errorf("%v tokens are computed at once", got)
			}
			c.updateBacklog(noon.Add(time.Second), r)
			alone := 1000 / (c.fit.perToken() + c.fit.perIteration()/c.chunk())
			if got, want := r.computedUnseen(), min(4000, test.part*alone); !near(got, want) {
				t.Errorf("%v tokens are computed after a second, want %v", got, want)
			}
			c.updateBacklog(noon.Add(time.Minute), r)
			if got := r.computedUnseen(); got != 4000 {
				t.Errorf("%v of 4000 tokens are computed after a minute", got)
			}
			answered := &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"}}
			r.backlog.observe(noon.Add(time.Minute), answered)
			if r.own.prefilling = 0; r.computedUnseen() != 0 {
				t.Errorf("%v tokens are computed of none", r.computedUnseen())
			}
		})
	}
}

// Where users' prompts fill the engine, those of lines wait.
func TestUsersPromptsAreComputedFirst(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	r := runners[0]
	r.interactive.seenAt = noon
	r.interactive.promptRate.add(noon, time.Minute, 1e6)
	c.updateBacklog(noon, r)
	r.backlog.observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1,
		Prefilling: 4000}, PromptTokens: 4000})
	c.updateBacklog(noon.Add(time.Minute), r)
	if r.own.prefilling = 4000; r.computedUnseen() != 0 {
		t.Errorf("%v tokens are computed beside those of users", r.computedUnseen())
	}
}

// Prompts that are probably computed make room for others: with readings each half minute, lines of
// seconds would be no more than the prompts that may wait.
func TestUnseenPromptsMakeRoom(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	it := iterations{seenAt: noon, fromMetrics: true, every: 30 * time.Second}
	at := noon.Add(10 * time.Second)
	own := ownLoad{prefilling: 3000}
	allowed := func(chunk float64) float64 {
		tokens, _ := it.prompts(at, 1000, 2500, 60, chunk, &own, &c.fit, c.tuning.Pace)
		return tokens
	}
	if got := allowed(64); got != 3500 {
		t.Errorf("%v tokens may wait where chunks are short, want 3500", got)
	}
	if it.promptAt = at; allowed(64) != 1000 { // a stream shows what is computed
		t.Errorf("%v tokens may wait beside streams, want 1000", allowed(64))
	}
	it.seenAt = time.Time{}
	if got := allowed(0); got != 3500 {
		t.Errorf("%v tokens may wait where no iteration was ever seen, want 3500", got)
	}
}
