package headroom_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A runner whose lines break while its metrics go on, such as one that answers 500, keeps the lines
// of the other one from growing only until some have broken.
func TestRunnersThatBreakLinesDoNotLimitOthers(t *testing.T) {
	c := newController(t, config())
	carried, broken := map[string]int{}, 0
	on := func(runner string) flowcontrol.Load {
		return flowcontrol.Load{Runner: runner, InFlight: carried[runner]}
	}
	for _, r := range []string{"bad", "good"} {
		c.Observe(noon, &flowcontrol.RunnerJoined{Load: on(r)})
	}
	for second := range 180 {
		now := noon.Add(time.Duration(second) * time.Second)
		for _, r := range []string{"bad", "good"} {
			m := flowcontrol.NoReading(flowcontrol.Metrics, now)
			m.Running, m.Waiting, m.KVUsed = float64(carried[r]), 0, 0
			m.OutputTokens = float64(second)
			m.TokenGaps, m.TokenGapTime = 30*float64(second), float64(second)
			c.Observe(now, &flowcontrol.Read{Runner: r, Reading: &m})
		}
		for _, g := range slices.Clone(c.Allowance(now).Runners) {
			if g.Runner == "bad" && g.Lines > 0 && (broken < 10 || second%30 == 0) {
				broken++ // or a trial
				c.Observe(now, &flowcontrol.Started{Load: on("bad"),
					PromptTokens: 20, OutputTokens: 200})
				c.Observe(now, &flowcontrol.Broken{Load: on("bad")})
			}
			for g.Runner == "good" && carried["good"] < g.Lines {
				carried["good"]++
				c.Observe(now, &flowcontrol.Started{Load: on("good"),
					PromptTokens: 20, OutputTokens: 2000})
				c.Observe(now, &flowcontrol.FirstToken{Load: on("good"),
					PromptTokens: 20})
			}
		}
	}
	if broken < 10 || carried["good"] < 20 {
		t.Errorf("the good runner carries %d lines, beside one that broke %d", carried["good"],
			broken)
	}
}
