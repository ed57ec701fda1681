package telemetry

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestAFrozenPageIsNotLoad(t *testing.T) {
	busy := func(change func(*flowcontrol.Reading)) flowcontrol.Reading {
		return reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.KVUsed, r.PromptTokens, r.OutputTokens = 3, 1, 0.5, 100, 900
			change(r)
		})
	}
	for name, c := range map[string]struct {
		// shown changes what the page shows at a second.
		shown  func(second int, r *flowcontrol.Reading)
		frozen bool // after 100 s
	}{
		"nothing moves": {func(int, *flowcontrol.Reading) {}, true},
		"only waiting": {func(_ int, r *flowcontrol.Reading) {
			r.Running = 0
		}, true},
		"idle": {func(_ int, r *flowcontrol.Reading) {
			r.Running, r.Waiting = 0, 0
		}, false},
		"a long prompt": {func(s int, r *flowcontrol.Reading) {
			r.KVUsed += float64(s) / 1e5
		}, false},
		"tokens": {func(s int, r *flowcontrol.Reading) {
			r.OutputTokens += float64(s)
		}, false},
		"gaps": {func(s int, r *flowcontrol.Reading) {
			r.TokenGaps = float64(s)
		}, false},
		"requests end": {func(s int, r *flowcontrol.Reading) {
			r.Running = float64(9 - s/50)
		}, false},
		"without KV": {func(_ int, r *flowcontrol.Reading) {
			r.KVUsed = math.NaN()
		}, false},
		"values that drop out": {func(s int, r *flowcontrol.Reading) {
			if s%2 == 0 {
				r.OutputTokens = math.NaN()
			}
		}, true},
		"until a moment ago": {func(s int, r *flowcontrol.Reading) {
			r.OutputTokens += float64(min(s, 60))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := frozen{after: time.Minute}
			var r flowcontrol.Reading
			var err error
			for second := range 101 {
				r = busy(func(r *flowcontrol.Reading) {
					r.Sampled = time.Unix(int64(second), 0)
					c.shown(second, r)
				})
				if err = f.check(&r); err != nil && second <= 60 {
					t.Fatalf("frozen after %d s", second)
				}
			}
			if errors.Is(err, errFrozen) != c.frozen || c.frozen != math.IsNaN(r.Running) {
				t.Errorf("got %v and %v running, want frozen %v", err, r.Running, c.frozen)
			}
			if c.frozen && (!math.IsNaN(r.KVUsed) || !math.IsNaN(r.Waiting) ||
				r.PromptTokens != 100) {
				t.Errorf("got %+v, want the counters alone", r)
			}
			// One request that moves the engine ends it.
			r = busy(func(r *flowcontrol.Reading) {
				r.Sampled, r.OutputTokens = time.Unix(101, 0), 9000
			})
			if err := f.check(&r); err != nil || r.Running != 3 {
				t.Errorf("got %v and %v running after the engine moved", err, r.Running)
			}
		})
	}
	f := frozen{}
	for second := range 1000 {
		r := busy(func(r *flowcontrol.Reading) { r.Sampled = time.Unix(int64(second), 0) })
		if err := f.check(&r); err != nil {
			t.Fatalf("frozen after %d s, want never", second)
		}
	}
}
