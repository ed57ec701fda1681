package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A line that holds much of the KV cache keeps a long prompt waiting, and every request behind it,
// while iterations are short and the cache is not full. It is evicted.
func TestLinesThatBlockTheCacheAreEvicted(t *testing.T) {
	for _, test := range []struct {
		name             string
		used             float64
		running, waiting float64 // interactive requests
		held             float64
		lines            int
		readings         int
		want             bool
	}{
		{"blocked", 0.65, 0, 30, 0, 1, 2, true},
		{"seen once", 0.65, 0, 30, 0, 1, 1, false},
		{"users run too", 0.65, 2, 30, 0.1, 1, 2, false},
		{"beside users", 0.65, 2, 30, 0.5, 1, 2, true},
		{"a tenth, beside users", 0.8, 2, 30, 0.15, 1, 2, false},
		{"a tenth of a full cache", 0.9, 2, 30, 0.15, 1, 2, true},
		{"less of a full cache", 0.9, 2, 30, 0.05, 1, 2, false},
		{"nobody waits", 0.65, 0, 0, 0.5, 1, 2, false},
		{"prompts are computed", 0.2, 0, 30, 0, 1, 2, false},
		{"no lines", 0.65, 0, 30, 0, 0, 2, false},
	} {
		c, runners := newPool(t, nil, "r")
		r := runners[0]
		r.own.lines, r.own.context = test.lines, 3000
		r.interactive.waiting, r.interactive.demand = test.waiting, test.running+test.waiting
		for range test.readings {
			blocked := r.kvPressure.blocks(&r.own, &r.interactive, test.used, test.held,
				c.tuning.Reserve.KVUsed, true)
			r.kvPressure.update(noon, &r.own, test.used, test.held, false, blocked, false,
				c.tuning)
		}
		if r.kvPressure.evict != test.want {
			t.Errorf("%s: evict is %v", test.name, r.kvPressure.evict)
		}
		if test.want && r.kvPressure.keep != 0 {
			t.Errorf("%s: %d lines are kept", test.name, r.kvPressure.keep)
		}
	}
}

// A runner that may start no line keeps lines that must go: those are evicted, and no others.
func TestLinesAreEvictedWhereNoneMayStart(t *testing.T) {
	until := noon.Add(time.Second)
	for name, r := range map[string]runner{
		"brake":     {brake: brake{since: noon, until: until, keep: 6}},
		"KV cache":  {kvPressure: kvPressure{keep: 6, evict: true, until: until}},
		"sequences": {slotPressure: slotPressure{keep: 6, evict: true, until: until}},
		"the lowest": {brake: brake{since: noon, until: until, keep: 8},
			kvPressure: kvPressure{keep: 6, evict: true, until: until}},
	} {
		r.own.lines = 10
		g := flowcontrol.RunnerAllowance{Lines: 0, Reason: ReasonLate}
		if r.restrict(noon, &g); g.Lines != 6 || !g.Evict {
			t.Errorf("%s: %+v, want all but 6 evicted", name, g)
		}
		r.own.lines = 6
		g = flowcontrol.RunnerAllowance{Lines: 0, Reason: ReasonLate}
		if r.restrict(noon, &g); g.Lines != 0 || g.Evict {
			t.Errorf("%s: %+v once they are gone", name, g)
		}
	}
}
