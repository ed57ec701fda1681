package autoscale

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// The policy request_rate adds up requests, whatever they are: those of the traffic and those by
// which the deadlines are met, the earliest first.
func TestRequestRate(t *testing.T) {
	due := func(lines int, in time.Duration) plan.Demand {
		return plan.Demand{Key: batch(in.String()),
			Deadline: noon.Add(in + DefaultConfig().Deadline.Guard),
			Lines:    lines, Work: 1}
	}
	chat := with(chatPool(20, 3.9), 4) // 3.5 requests a second
	for _, test := range []struct {
		name   string
		pools  []PoolState
		jobs   []plan.Demand
		want   int // of the first pool
		closed bool
	}{
		{"no work", []PoolState{batchPool(9)}, nil, 0, false},
		{"a line is enough to start", []PoolState{batchPool(9)}, jobs{due(1, 24*time.Hour)}, 1,
			false},
		{"two a second", []PoolState{batchPool(9)}, jobs{due(7200, time.Hour)}, 3, false},
		{"the sum until the later deadline", []PoolState{batchPool(9)}, jobs{due(
			7200, 2*time.Hour), due(3600, time.Hour)}, 2, false},
		{"no deadline", []PoolState{batchPool(9)}, jobs{{Key: batch("a"), Lines: 7200, Work: 1}}, 0,
			false},
		{"the traffic alone", []PoolState{chat}, nil, 4, false},
		{"traffic and lines", []PoolState{chat}, jobs{due(7200, time.Hour)}, 7, false},
		{"no more than the pool has", []PoolState{batchPool(2)}, jobs{due(7200, time.Hour)}, 2,
			false},
		{"no capacity beside the traffic", []PoolState{with(chatPool(20, 3.9), 3)}, jobs{due(
			7200, time.Hour)}, 7, true},
		{"one pool", []PoolState{batchPool(9), batchPool(9)}, jobs{due(7200, time.Hour)}, 3, false},
	} {
		for i := range test.pools {
			test.pools[i].Name += string(rune('a' + i))
		}
		c := build(t, func(c *Config) {
			c.Policy, c.RequestRate = "request_rate", RequestRateConfig{1, 0.12}
		})
		d := c.Step(noon, State{Pools: test.pools, Jobs: test.jobs})
		if w := d.Pools[0]; w.Replicas != test.want || w.Closed != test.closed {
			t.Errorf("%s: %d replicas, closed %v; want %d, %v", test.name, w.Replicas, w.Closed,
				test.want, test.closed)
		}
		for _, w := range d.Pools[1:] {
			if w.Replicas != 0 {
				t.Errorf("%s: %d replicas of another pool", test.name, w.Replicas)
			}
		}
	}
}
