package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

// A value that readings lack, always, at times or from some time on, makes nothing unknown for
// good.
func TestAbsentValues(t *testing.T) {
	nan := math.NaN()
	unknown := flowcontrol.Attainment{Requests: nan, Late: nan}
	absent := map[string]func(*flowcontrol.Reading){
		"running":          func(r *flowcontrol.Reading) { r.Running = nan },
		"waiting":          func(r *flowcontrol.Reading) { r.Waiting = nan },
		"running, waiting": func(r *flowcontrol.Reading) { r.Running, r.Waiting = nan, nan },
		"KV usage":         func(r *flowcontrol.Reading) { r.KVUsed = nan },
		"KV tokens":        func(r *flowcontrol.Reading) { r.KVTokens = nan },
		"prompt tokens":    func(r *flowcontrol.Reading) { r.PromptTokens = nan },
		"cached tokens":    func(r *flowcontrol.Reading) { r.CachedTokens = nan },
		"output tokens":    func(r *flowcontrol.Reading) { r.OutputTokens = nan },
		"preemptions":      func(r *flowcontrol.Reading) { r.Preemptions = nan },
		"gaps":             func(r *flowcontrol.Reading) { r.TokenGaps = nan },
		"time of gaps":     func(r *flowcontrol.Reading) { r.TokenGapTime = nan },
		"first tokens": func(r *flowcontrol.Reading) {
			r.TTFT, r.FirstTokenTimes = unknown, nil
		},
		"times of first tokens": func(r *flowcontrol.Reading) { r.FirstTokenTimes = nil },
		"tokens":                func(r *flowcontrol.Reading) { r.TPOT = unknown },
	}
	for name, leaveOut := range absent {
		for when, lacks := range map[string]func(since time.Duration) bool{
			"always":           func(time.Duration) bool { return true },
			"once":             func(since time.Duration) bool { return since == 3*time.Minute },
			"from a minute on": func(since time.Duration) bool { return since > time.Minute },
			"every ten seconds": func(since time.Duration) bool {
				return since%(10*time.Second) == 0
			},
		} {
			p := flowcontroltest.NewLivePool(newPolicy(t, nil))
			p.Change = func(r *flowcontrol.Reading) {
				if lacks(p.Now.Sub(flowcontroltest.Noon)) {
					leaveOut(r)
				}
			}
			p.Run(8*time.Minute, nil)
			before := p.Started
			p.Run(2*time.Minute, nil)
			c := p.Controller.(policy)
			if c.Learned(p.Now) == nil {
				t.Errorf("without %s, %s: nothing can be kept of the pool", name, when)
			}
			for _, m := range c.roster.Members {
				in := &m.State.interactive
				for what, v := range map[string]float64{"requests": in.running.mean,
					"context": in.context.mean, "prompts": in.promptRate.mean,
					"demand": in.demand, "own share": c.ownShare.mean} {
					if math.IsNaN(v) {
						t.Errorf("without %s, %s: %s of users are not a number", name, when, what)
					}
				}
			}
			if p.Started == before {
				t.Errorf("without %s, %s: no line starts in two minutes", name, when)
			}
		}
	}
}
