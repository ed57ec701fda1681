package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Requests that take twice as long hold twice as much of the KV cache at a time. Iterations become
// no longer than leaves room for that, whatever the objective allows, and no less than usual.
func TestSlowerUsersFitIntoTheKVCache(t *testing.T) {
	for _, test := range []struct {
		name  string
		users float64 // the share of the KV cache that users hold without batch work
		lines int
		want  float64 // how many times as long
	}{
		{"hardly any", 0.02, 0, maxSlowdown},
		{"half", 0.5, 0, 0.85 / 0.5},
		{"half, with lines", 0.5, 10, 0.85 / 0.5},
		{"all", 0.8, 0, usualSlowdown},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, runners := newPool(t, func(cfg *flowcontrol.Config) {
				cfg.SLO.TPOT = time.Second
			}, "r")
			r := runners[0]
			alone, longer := 40.0, 1.0
			if test.lines > 0 {
				longer = 1.5
			}
			withLines := alone + c.fit.perSequence()*float64(test.lines)
			r.iterations.base.add(time.Minute, time.Minute, 100, 100*withLines)
			r.iterations.all.add(time.Minute, time.Minute, 100, 100*longer*alone)
			for range test.lines {
				r.own.lines++
				r.own.observe(noon, &flowcontrol.Started{
					Load: flowcontrol.Load{InFlight: r.own.lines}, PromptTokens: 4000}, &c.sizes)
			}
			c.alone.iteration.value, c.alone.iteration.age = alone, time.Hour.Seconds()
			c.tokens.room = math.Inf(1)
			held := r.own.context / 400_000
			for i := range 10 {
				c.readMetrics(noon, r, &flowcontrol.Reading{Source: flowcontrol.Metrics,
					Sampled: noon.Add(time.Duration(i+1) * time.Second), Running: 5,
					KVTokens: 400_000, KVUsed: longer*test.users + held})
			}
			c.kvLonger = c.longerByKV()
			if got := c.targetTimeAt(1) / alone; math.Abs(got-test.want) > 0.03 {
				t.Errorf("iterations may take %.2f times as long, want %.2f", got, test.want)
			}
		})
	}
}
