package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// scrapeTarget is something that the daemon reads periodically: an engine's metrics, a runner's
// capabilities, or the gateway's metrics.
type scrapeTarget struct {
	dispatcher *dispatcher
	kind       scenario.MetricsSource
	replica    *replica // nil: the gateway
	number     int      // of the replica
	// reads the present state
	read func(now time.Time) flowcontrol.Reading
	rng  *rand.Rand

	life        int // of the dispatcher
	started     time.Time
	scrapes     int
	last        *flowcontrol.Reading // the last sample
	counterBase flowcontrol.Reading  // the counters at their last reset
}

// startScraping starts to read a replica's metrics and capabilities.
func (d *dispatcher) startScraping(r *replica) {
	number := r.number
	if r.pool.name != "" {
		number = -1 // faults of metrics count the first pool's
	}
	m := d.sim.setup.Scenario.Metrics
	if m.Engine {
		d.addTarget(&scrapeTarget{kind: scenario.EngineSource, replica: r, number: number,
			read: r.metrics})
	}
	if ttl := m.Capabilities; ttl > 0 {
		kept := flowcontrol.Reading{}
		d.addTarget(&scrapeTarget{kind: scenario.CapabilitiesSource, replica: r, number: number,
			read: func(now time.Time) flowcontrol.Reading {
				if kept.Sampled.IsZero() || now.Sub(kept.Sampled) >= ttl {
					kept = r.capabilities(now)
				}
				return kept
			}})
	}
}

// scrapeGateway starts to read the gateway's metrics, if there is one.
func (d *dispatcher) scrapeGateway(g *gateway) {
	if g != nil {
		d.addTarget(&scrapeTarget{kind: scenario.GatewaySource, number: -1, read: g.reading})
	}
}

func (d *dispatcher) addTarget(s *scrapeTarget) {
	sim := d.sim
	s.dispatcher, s.life, s.started = d, d.lives, sim.now
	name := string(s.kind)
	if s.replica != nil {
		name += " " + s.replica.name
	}
	s.rng = sim.setup.seed().Rand("scrape " + name)
	for _, f := range sim.setup.Scenario.Metrics.Faults {
		if at := epoch.Add(f.From); f.Kind == scenario.Reset && f.Affects(s.kind, s.number) &&
			!at.Before(sim.now) {
			sim.queue.add(at, func() { s.counterBase = s.read(sim.now) })
		}
	}
	s.schedule()
}

// schedule schedules the next scrape.
func (s *scrapeTarget) schedule() {
	m := s.dispatcher.sim.setup.Scenario.Metrics
	late := time.Duration(0)
	if m.Jitter > 0 {
		late = time.Duration(s.rng.Int64N(int64(m.Jitter)))
	}
	next := time.Duration(s.scrapes)*m.PeriodOf(s.kind) + late
	s.dispatcher.sim.queue.add(s.started.Add(next), s.scrape)
}

// scrape takes a sample and sends it to the planner.
func (s *scrapeTarget) scrape() {
	d := s.dispatcher
	sim := d.sim
	if s.life != d.lives {
		return // the daemon was killed
	}
	if s.replica != nil && (d.replicas[s.replica.name] != s.replica || s.replica.phase == ended) {
		return // it is gone
	}
	s.scrapes++
	s.schedule()
	r := s.sample(sim.now)
	if r == nil {
		return
	}
	reading := plan.Reading{Pool: sim.pools[0].planned, Model: model, Reading: r}
	if s.replica != nil {
		reading = plan.Reading{Runner: s.replica.name, Reading: r}
	}
	sim.queue.add(sim.now.Add(sim.setup.Scenario.Metrics.Delay), func() { d.step(reading) })
}

// sample returns what a scrape reads, with the faults of its time; nil: nothing.
func (s *scrapeTarget) sample(now time.Time) *flowcontrol.Reading {
	switch s.fault(now.Sub(epoch)) {
	case scenario.Absent:
		return nil
	case scenario.Frozen:
		return s.last
	case scenario.Restamped:
		if s.last == nil {
			return nil
		}
		lie := *s.last
		lie.Sampled = now
		return &lie
	case scenario.Reset: // it acts on counters, not on the page
	}
	r := s.read(now)
	for _, c := range []struct {
		counter *float64
		zero    float64
	}{
		{&r.PromptTokens, s.counterBase.PromptTokens},
		{&r.CachedTokens, s.counterBase.CachedTokens},
		{&r.OutputTokens, s.counterBase.OutputTokens},
		{&r.Preemptions, s.counterBase.Preemptions},
		{&r.TokenGaps, s.counterBase.TokenGaps}, {&r.TokenGapTime, s.counterBase.TokenGapTime},
		{&r.TTFT.Requests, s.counterBase.TTFT.Requests},
		{&r.TTFT.Late, s.counterBase.TTFT.Late},
		{&r.TPOT.Requests, s.counterBase.TPOT.Requests}, {&r.TPOT.Late, s.counterBase.TPOT.Late},
	} {
		*c.counter -= c.zero
	}
	subtract(r.GapTimes, s.counterBase.GapTimes)
	subtract(r.PromptLengths, s.counterBase.PromptLengths)
	subtract(r.AnswerLengths, s.counterBase.AnswerLengths)
	subtract(r.FirstTokenTimes, s.counterBase.FirstTokenTimes)
	subtract(r.TokenTimes, s.counterBase.TokenTimes)
	s.last = &r
	return s.last
}

// fault returns the first of the target's faults at a time; empty: none.
func (s *scrapeTarget) fault(at time.Duration) scenario.MetricsFaultKind {
	for _, f := range s.dispatcher.sim.setup.Scenario.Metrics.Faults {
		if f.Kind != scenario.Reset && f.From <= at && at < f.To && f.Affects(s.kind, s.number) {
			return f.Kind
		}
	}
	return ""
}

// metrics returns what the engine's own metrics show.
func (r *replica) metrics(now time.Time) flowcontrol.Reading {
	s := r.engine.Snapshot(now)
	seen := flowcontrol.NoReading(flowcontrol.Metrics, now)
	seen.Running, seen.Waiting = float64(s.Running), float64(s.Waiting)
	seen.KVUsed, seen.KVTokens = s.KVUtilization(), float64(s.KVBlocks*engine.BlockSize)
	seen.PromptTokens, seen.CachedTokens = float64(s.PromptTokens), float64(s.PrefixHits)
	seen.OutputTokens, seen.Preemptions = float64(s.GeneratedTokens), float64(s.Preemptions)
	gaps := r.engine.TokenGaps(now)
	seen.TokenGaps, seen.TokenGapTime = float64(gaps.Count), gaps.Time.Seconds()
	seen.GapTimes = buckets(gapBounds, gaps.Buckets[:])
	firstTokens := r.engine.FirstTokens()
	seen.FirstTokenTimes = buckets(firstTokenBounds, firstTokens[:])
	prompts, answers := r.engine.PromptLengths(), r.engine.AnswerLengths()
	seen.PromptLengths = buckets(prompts.Bounds, prompts.Counts)
	seen.AnswerLengths = buckets(answers.Bounds, answers.Counts)
	return seen
}

// capabilities returns what a runner answers to GET /v1/capabilities.
func (r *replica) capabilities(now time.Time) flowcontrol.Reading {
	s := r.engine.Snapshot(now)
	seen := flowcontrol.NoReading(flowcontrol.Capabilities, now)
	seen.Waiting, seen.KVUsed = float64(s.Waiting), s.KVUtilization()
	return seen
}
