package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// An engine that is a hundred times as fast as assumed is not held empty by what a line is assumed
// to cost: first tokens far below their objective can bear it, and without objectives a line shows
// now and then what it costs.
func TestFastEnginesGetLines(t *testing.T) {
	for name, test := range map[string]struct {
		slo   flowcontrol.SLO
		empty time.Duration // before a line is allowed
	}{
		"objectives of a minute": {flowcontrol.SLO{TTFT: time.Minute, TPOT: 5 * time.Second,
			Slowdown: 1.15, Late: 0.006}, 0},
		"no objectives": {flowcontrol.SLO{Slowdown: 1.15, Late: 0.006}, 30 * time.Second},
	} {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) {
			cfg.SLO, cfg.Engine = test.slo, flowcontrol.Engine{}
		}, "r")
		now, load := noon, flowcontrol.Load{Runner: "r"}
		read := func() {
			r := flowcontrol.NoReading(flowcontrol.Metrics, now)
			r.Running, r.Waiting, r.KVUsed = 0, 0, 0
			c.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &r})
			now = now.Add(time.Second)
		}
		for range 120 {
			load.InFlight = 1
			c.Observe(now, &flowcontrol.Started{Load: load, PromptTokens: 4, OutputTokens: 300,
				Streamed: true})
			c.Observe(now, &flowcontrol.FirstToken{Load: load, PromptTokens: 4,
				Latency: 3 * time.Millisecond})
			c.Observe(now, &flowcontrol.TokenGaps{Load: load, Gaps: 300,
				Time: 180 * time.Millisecond})
			load.InFlight = 0
			c.Observe(now, &flowcontrol.Answered{Load: load, PromptTokens: 4, OutputTokens: 300,
				Latency: 183 * time.Millisecond})
			read()
		}
		// Users send prompts that the prefix cache holds nearly whole.
		c.first.prompts.tokens.mean, c.first.prompts.count.mean = 0.2, 1
		for begin := now; c.Allowance(now).Runners[0].Lines == 0; read() {
			if now.Sub(begin) > test.empty {
				t.Errorf("%s: no line after %v: %+v", name, now.Sub(begin), c.Allowance(now))
				break
			}
		}
	}
}
