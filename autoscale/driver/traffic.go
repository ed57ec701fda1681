package driver

import (
	"math"
	"sync"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// traffic measures the interactive traffic of each pool. Readings come from other goroutines.
type traffic struct {
	mu     sync.Mutex
	pools  map[string]*autoscale.Traffic
	poolOf map[string]string // by runner, as of the last survey
}

func newTraffic() *traffic {
	return &traffic{pools: map[string]*autoscale.Traffic{}, poolOf: map[string]string{}}
}

// Observe takes over a reading of a runner's metrics.
func (d *Driver) Observe(runner string, r *flowcontrol.Reading) {
	if r.Source != flowcontrol.Metrics {
		return
	}
	cached := r.CachedTokens
	if math.IsNaN(cached) { // the engine does not show it
		cached = 0
	}
	t := d.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	if pool, known := t.poolOf[runner]; known {
		t.of(pool).Sampled(runner, autoscale.Counters{At: r.Sampled, Requests: r.Requests,
			PromptTokens: r.PromptTokens - cached, OutputTokens: r.OutputTokens})
	}
}

func (t *traffic) of(pool string) *autoscale.Traffic {
	if t.pools[pool] == nil {
		t.pools[pool] = &autoscale.Traffic{}
	}
	return t.pools[pool]
}

// surveyed takes over what the runners have computed for batch lines.
func (t *traffic) surveyed(s plan.Survey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.poolOf)
	for _, r := range s.Runners {
		t.poolOf[r.ID] = r.Pool
		t.of(r.Pool).Computed(r.ID, autoscale.Counters{At: s.At, Requests: r.Served.Requests,
			PromptTokens: r.Served.PromptTokens, OutputTokens: r.Served.OutputTokens})
	}
}

// interactive returns the traffic of a pool.
func (t *traffic) interactive(now time.Time, pool string, s plan.Survey) autoscale.Interactive {
	t.mu.Lock()
	defer t.mu.Unlock()
	var runners []string
	for _, r := range s.Runners {
		if r.Pool == pool {
			runners = append(runners, r.ID)
		}
	}
	return t.of(pool).Interactive(now, runners)
}
