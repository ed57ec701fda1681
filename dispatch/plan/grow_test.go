package plan

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// What was measured of a runner without a list holds when a batch names another model.
func TestPoolOfAnUnlistedRunnerGrows(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	own := flow
	own.Pools = map[string]flowcontrol.Config{"c": flow}
	for name, c := range map[string]struct {
		flow   flowcontrol.Config
		first  []string
		second RunnerUp
		others []RunnerUp
		kept   bool
	}{
		"one model more": {flow: flow, first: []string{"b"}, kept: true,
			second: RunnerUp{Runner: "r", Models: []string{"b", "a"}, Unlisted: true}},
		"a runner with a list": {flow: flow, first: []string{"b"},
			second: RunnerUp{Runner: "r", Models: []string{"b", "a"}}},
		"one model less": {flow: flow, first: []string{"b", "c"},
			second: RunnerUp{Runner: "r", Models: []string{"b", "a"}, Unlisted: true}},
		"a configured pool": {flow: own, first: []string{"b"},
			second: RunnerUp{Runner: "r", Models: []string{"a", "b", "c"}, Unlisted: true}},
		"not alone": {flow: flow, first: []string{"b"},
			others: []RunnerUp{{Runner: "s", Models: []string{"b"}, Unlisted: true}},
			second: RunnerUp{Runner: "r", Models: []string{"b", "a"}, Unlisted: true}},
		"another pool": {flow: flow, first: []string{"b"},
			others: []RunnerUp{{Runner: "s", Models: []string{"a", "b"}}},
			second: RunnerUp{Runner: "r", Models: []string{"b", "a"}, Unlisted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(),
				Flow: c.flow})
			now := time.Unix(1_000_000, 0)
			p.Step(now, BatchPut{Batch{ID: "x", Tenant: "t", Created: now,
				Models: []ModelLines{{Model: "a", Lines: 1}, {Model: "b", Lines: 1}}}})
			p.Step(now, RunnerUp{Runner: "r", Models: c.first, Unlisted: true})
			for _, other := range c.others {
				p.Step(now, other)
			}
			before := p.runners["r"].pool
			p.Step(now, c.second)
			if after := p.runners["r"].pool; (after == before) != c.kept {
				t.Errorf("the pool is the same: %v, want %v", after == before, c.kept)
			}
			for i, line := range []string{"a", "b"} {
				started := p.Step(now, Loaded{Key: JobKey{"x", line}, Chunk: i,
					Lines: []Line{{Slot: 0, PromptTokens: 10}}}).Start
				if i == 0 && len(c.others) == 0 && len(started) != 1 {
					t.Errorf("%d lines of %s started, want 1", len(started), line)
				}
			}
			for i, pool := range p.pools {
				if i > 0 && p.pools[i-1].key >= pool.key {
					t.Errorf("pools %q and %q are out of order", p.pools[i-1].key, pool.key)
				}
			}
		})
	}
}
