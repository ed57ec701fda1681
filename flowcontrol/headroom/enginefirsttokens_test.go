package headroom

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// times returns a histogram with edges of 1 s, 2 s and 4 s, from the counts in its buckets.
func times(counts ...float64) (f firstTokenTimes) {
	sum := 0.0
	for i, n := range counts {
		sum += n
		f = append(f, flowcontrol.Bucket{Upper: firstTokenEdges[i], Count: sum})
	}
	return f
}

// seen is an observation with its time.
type seen struct {
	at time.Time
	carrying
}

// First tokens of batch lines are taken from those that an engine counted, however late either is
// reported.
func TestOwnFirstTokensAreRemoved(t *testing.T) {
	line := func(second int, took float64) seen {
		return seen{noon.Add(time.Duration(second) * time.Second), &flowcontrol.FirstToken{
			Latency: time.Duration(took * float64(time.Second))}}
	}
	unseen := seen{noon, &flowcontrol.Started{}}
	for _, test := range []struct {
		name     string
		lines    []seen
		readings [][]float64 // what the engine counts between two readings
		want     []float64   // of all of them together
	}{
		{"no lines", nil, [][]float64{{3, 2, 1, 0}}, []float64{3, 2, 1, 0}},
		{"streamed lines", []seen{line(1, 0.5), line(1, 3)},
			[][]float64{{3, 2, 1, 0}}, []float64{2, 2, 0, 0}},
		{"seen after the reading", []seen{line(2, 0.5), line(2, 3)},
			[][]float64{{0, 2, 0, 0}, {3, 0, 1, 0}}, []float64{2, 2, 0, 0}},
		{"less time for the engine than for us", []seen{line(1, 2.1)},
			[][]float64{{0, 2, 0, 0}, {1, 0, 0, 0}}, []float64{1, 1, 0, 0}},
		{"not counted by the engine", []seen{line(1, 0.5)},
			[][]float64{{0, 0, 1, 0}, {2, 0, 0, 0}}, []float64{2, 0, 1, 0}},
		{"not streamed", []seen{unseen, unseen},
			[][]float64{{4, 2, 2, 0}}, []float64{3, 1.5, 1.5, 0}},
		{"shed", []seen{unseen, unseen, {noon, &flowcontrol.Shed{}}},
			[][]float64{{4, 0, 0, 0}}, []float64{3, 0, 0, 0}},
		{"all not streamed", []seen{unseen, unseen, unseen},
			[][]float64{{2, 0, 0, 0}}, []float64{0, 0, 0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var own ownFirstTokens
			for _, l := range test.lines {
				own.observe(l.at, l.carrying)
			}
			sum := make([]float64, len(test.want))
			for i, counts := range test.readings {
				fresh := times(counts...)
				own.removeFrom(fresh, noon.Add(time.Duration(i+1)*time.Second))
				for i, n := range fresh.counts() {
					sum[i] += n
				}
			}
			if !slices.Equal(sum, test.want) {
				t.Errorf("left are %v, want %v", sum, test.want)
			}
		})
	}
}

// enginePool is a pool of one runner whose engine shows first tokens, and no gateway.
type enginePool struct {
	*Controller
	now    time.Time
	counts [4]float64
}

// report lets a second pass, in which the engine counts first tokens within a second, and others
// within four. So many of the latter are of streamed batch lines.
func (p *enginePool) report(soon, late float64, ours int) {
	p.now = p.now.Add(time.Second)
	for range ours {
		on := flowcontrol.Load{Runner: "r", InFlight: 1}
		p.Observe(p.now, &flowcontrol.Started{Load: on, Streamed: true, PromptTokens: 10})
		p.Observe(p.now, &flowcontrol.FirstToken{Load: on, Latency: 3 * time.Second,
			PromptTokens: 10})
	}
	r := flowcontrol.NoReading(flowcontrol.Metrics, p.now)
	for i, n := range []float64{soon, soon, soon + late, soon + late} {
		p.counts[i] += n
		r.FirstTokenTimes = append(r.FirstTokenTimes,
			flowcontrol.Bucket{Upper: firstTokenEdges[i], Count: p.counts[i]})
	}
	p.Observe(p.now, &flowcontrol.Read{Runner: "r", Reading: &r})
}

// Without a gateway, engines show first tokens of interactive requests, and which were late because
// of batch work.
func TestEnginesStandInForTheGateway(t *testing.T) {
	charged := func(late float64, ours int) float64 {
		c, _ := newPool(t, nil, "r")
		p := &enginePool{Controller: c, now: noon}
		for range 40 {
			p.report(10, 0, 0)
		}
		if p.first.alone.total < fewFirstTokens {
			t.Fatalf("%v first tokens are known", p.first.alone.total)
		}
		for range 200 {
			p.ownShare.mean = 0.5
			p.attribution.slowdowns.add(p.now, 2)
			p.report(10, late+float64(ours), ours)
		}
		return p.firstForecast.late
	}
	if got := charged(0, 1); got > 1 {
		t.Errorf("%v late requests are charged, but they were lines", got)
	}
	if got := charged(1, 0); got < 100 {
		t.Errorf("%v late requests are charged of 200", got)
	}
}

// A gateway that shows itself later is believed instead.
func TestGatewayReplacesEngines(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	p := &enginePool{Controller: c, now: noon}
	for range 40 {
		p.report(10, 5, 0)
	}
	p.now = p.now.Add(time.Second)
	p.Advance(p.now)
	before := p.quiet.first.share
	g := gateway{Controller: c, now: p.now, counts: [4]float64{1e6, 1e6, 1e6, 1e6}}
	g.report(1, 0)
	if after := g.quiet.first.share; after.all > before.all {
		t.Errorf("the gateway's first reading counts as %v requests", after.all-before.all)
	}
	p.now = g.now
	all := g.outcomes.ttft.Last.Requests
	p.report(10, 5, 0)
	p.Advance(p.now.Add(2 * time.Second))
	if got := g.outcomes.ttft.Last.Requests; got != all {
		t.Errorf("%v requests are counted, %v by the gateway", got, all)
	}
}

// An objective that a cold prefix cache has raised falls again when the pool gets faster.
func TestObjectiveFallsWithWarmCaches(t *testing.T) {
	g := newGateway(t)
	for range 30 {
		g.report(15, 5)
	}
	raised := g.firstObjective()
	for range 60 {
		g.carriedAt = g.now // lines run from now on
		g.report(20, 0)
	}
	if got := g.firstObjective(); raised <= g.slo.TTFT || got != g.slo.TTFT {
		t.Errorf("the objective was %v and is %v, want %v", raised, got, g.slo.TTFT)
	}
	if got := g.quiet.ttft(); got > 0.01 {
		t.Errorf("a share of %v still counts as late without batch work", got)
	}
}

// First tokens in the bucket that contains the objective do not move it: they may be in time.
func TestCoarseBucketsDoNotMoveTheObjective(t *testing.T) {
	g := newGateway(t)
	g.slo.TTFT = 3900 * time.Millisecond
	for range 40 {
		g.report(0, 20) // within 4 s
	}
	if got := g.firstObjective(); got != g.slo.TTFT {
		t.Errorf("the objective is %v, want %v", got, g.slo.TTFT)
	}
	if got := g.first.allowed(0.01, 0.01); math.Abs(got-usualSlowdown) > 0.1 {
		t.Errorf("first tokens may be slowed down by %v, want about %v", got, usualSlowdown)
	}
}

// Lines of few tokens decode in between prompts, so that the gaps of their tokens say little.
func TestRareGapsGiveWayToMetrics(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	now, gaps, took := noon, 0.0, 0.0
	for range 60 {
		now = now.Add(time.Second)
		c.Observe(now, &flowcontrol.TokenGaps{Load: flowcontrol.Load{Runner: "r", InFlight: 1},
			Gaps: 2, Time: 80 * time.Millisecond})
		gaps, took = gaps+10, took+10*0.09
		r := flowcontrol.NoReading(flowcontrol.Metrics, now)
		r.Running, r.TokenGaps, r.TokenGapTime = 1, gaps, took
		c.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &r})
	}
	if got := runners[0].iterations.all.mean(); math.Abs(got-90) > 5 {
		t.Errorf("iterations take %v ms, want the 90 ms of the metrics", got)
	}
}
