package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// source is something that the daemon looks at again and again: an engine's
// metrics, a runner's capabilities, or the gateway's metrics.
type source struct {
	batches *batches
	kind    scenario.MetricsSource
	replica *replica // nil: the gateway
	number  int      // of the replica
	present func(now time.Time) flowcontrol.Reading
	random  *rand.Rand

	began time.Time
	looks int
	last  *flowcontrol.Reading // as it was seen
	zero  flowcontrol.Reading  // what the counters were when they last began anew
}

// watch starts to look at all that a replica shows.
func (b *batches) watch(r *replica) {
	number := r.number
	if r.pool.name != "" {
		number = -1 // faults of metrics count the first pool's
	}
	b.look(&source{kind: scenario.EngineSource, replica: r, number: number, present: r.metrics})
	if ttl := b.plant.setup.Scenario.Metrics.Capabilities; ttl > 0 {
		kept := flowcontrol.Reading{}
		b.look(&source{kind: scenario.CapabilitiesSource, replica: r, number: number,
			present: func(now time.Time) flowcontrol.Reading {
				if kept.Sampled.IsZero() || now.Sub(kept.Sampled) >= ttl {
					kept = r.capabilities(now)
				}
				return kept
			}})
	}
}

// watchGateway starts to look at the gateway, if there is one.
func (b *batches) watchGateway(g *gateway) {
	if g != nil {
		b.look(&source{kind: scenario.GatewaySource, number: -1, present: g.look})
	}
}

func (b *batches) look(s *source) {
	p := b.plant
	s.batches, s.began = b, p.now
	name := string(s.kind)
	if s.replica != nil {
		name += " " + s.replica.name
	}
	s.random = p.setup.seed().Cause("scrape " + name)
	for _, f := range p.setup.Scenario.Metrics.Faults {
		if at := epoch.Add(f.From); f.Kind == scenario.Reset && f.Strikes(s.kind, s.number) &&
			!at.Before(p.now) {
			p.agenda.put(at, func() { s.zero = s.present(p.now) })
		}
	}
	s.schedule()
}

// schedule puts down the next look.
func (s *source) schedule() {
	m := s.batches.plant.setup.Scenario.Metrics
	late := time.Duration(0)
	if m.Jitter > 0 {
		late = time.Duration(s.random.Int64N(int64(m.Jitter)))
	}
	s.batches.plant.agenda.put(s.began.Add(time.Duration(s.looks)*m.Period+late), s.scrape)
}

// scrape looks, and sends what is seen on its way.
func (s *source) scrape() {
	b := s.batches
	p := b.plant
	if s.replica != nil && (b.replicas[s.replica.name] != s.replica || s.replica.phase == gone) {
		return // it is gone
	}
	s.looks++
	s.schedule()
	r := s.seen(p.now)
	if r == nil {
		return
	}
	told := plan.Reading{Model: p.pools[0].models[0], Reading: r} // what no other pool serves
	if s.replica != nil {
		told = plan.Reading{Runner: s.replica.name, Reading: r}
	}
	p.agenda.put(p.now.Add(p.setup.Scenario.Metrics.Delay), func() { b.step(told) })
}

// seen is what a look shows, with the faults of its time; nil: nothing.
func (s *source) seen(now time.Time) *flowcontrol.Reading {
	switch s.fault(now.Sub(epoch)) {
	case scenario.Absent:
		return nil
	case scenario.Frozen:
		return s.last
	case scenario.Lying:
		if s.last == nil {
			return nil
		}
		lie := *s.last
		lie.Sampled = now
		return &lie
	}
	r := s.present(now)
	for _, c := range []struct {
		counter *float64
		zero    float64
	}{
		{&r.PromptTokens, s.zero.PromptTokens}, {&r.CachedTokens, s.zero.CachedTokens},
		{&r.OutputTokens, s.zero.OutputTokens},
		{&r.Preemptions, s.zero.Preemptions}, {&r.TTFT.Requests, s.zero.TTFT.Requests},
		{&r.TTFT.Late, s.zero.TTFT.Late},
		{&r.TPOT.Requests, s.zero.TPOT.Requests}, {&r.TPOT.Late, s.zero.TPOT.Late},
	} {
		*c.counter -= c.zero
	}
	s.last = &r
	return s.last
}

// fault is the first of the source's faults that lasts at a time; empty: none.
func (s *source) fault(at time.Duration) scenario.MetricsFaultKind {
	for _, f := range s.batches.plant.setup.Scenario.Metrics.Faults {
		if f.Kind != scenario.Reset && f.From <= at && at < f.To && f.Strikes(s.kind, s.number) {
			return f.Kind
		}
	}
	return ""
}

// metrics is what the engine's own metrics show. Its latencies are no use: they
// mix batch lines with interactive requests.
func (r *replica) metrics(now time.Time) flowcontrol.Reading {
	s := r.engine.Snapshot(now)
	seen := flowcontrol.NoReading(flowcontrol.Metrics, now)
	seen.Running, seen.Waiting = float64(s.Running), float64(s.Waiting)
	seen.KVUsed, seen.KVTokens = s.KVUtilization(), float64(s.KVBlocks*engine.BlockSize)
	seen.PromptTokens, seen.CachedTokens = float64(s.PromptTokens), float64(s.PrefixHits)
	seen.OutputTokens, seen.Preemptions = float64(s.GeneratedTokens), float64(s.Preemptions)
	return seen
}

// capabilities is what a runner answers to GET /v1/capabilities.
func (r *replica) capabilities(now time.Time) flowcontrol.Reading {
	s := r.engine.Snapshot(now)
	seen := flowcontrol.NoReading(flowcontrol.Capabilities, now)
	seen.Waiting, seen.KVUsed = float64(s.Waiting), s.KVUtilization()
	return seen
}
