package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// mixedPool is a pool whose gateway counts batch lines, most of which are late, beside engines that
// count the same first tokens.
type mixedPool struct {
	*Controller
	r              *runner
	now            time.Time
	requests, late float64
	engine         flowcontrol.Reading
	// What the gateway counts of the time between tokens, and how many lines of each reading are
	// late.
	tokens    flowcontrol.Attainment
	lateLines float64
}

func newMixedPool(t *testing.T) *mixedPool {
	c, runners := newPool(t, nil, "r")
	c.ownShare.mean = 0.5
	c.mixture.changes, c.mixture.xx, c.mixture.xy, c.mixture.yy = 1000, 1e6, 1e6, 1e6
	return &mixedPool{Controller: c, r: runners[0], now: noon,
		engine: flowcontrol.NoReading(flowcontrol.Metrics, noon)}
}

// pass lets five seconds pass, in which ten users are served in time.
func (p *mixedPool) pass(withEngines bool) {
	p.now = p.now.Add(5 * time.Second)
	p.ownShare.mean, p.linesAnswered = 0.5, 100
	for i := range 100 {
		latency := time.Second
		if float64(i) < p.lateLines {
			latency *= 4
		}
		p.mixedTokens.answered(&flowcontrol.Answered{OutputTokens: 20, Latency: latency}, 100)
	}
	p.requests, p.late = p.requests+110, p.late+50
	if withEngines {
		before := p.engine
		p.engine.Sampled = p.now
		p.engine.FirstTokenTimes = times(10*p.requests/110, 0, 0, 0)
		p.engineFirst.add(&before, &p.engine, &p.r.ownFirst)
		p.readEngines(p.now)
	}
	g := flowcontrol.NoReading(flowcontrol.Gateway, p.now)
	g.TTFT = flowcontrol.Attainment{Requests: p.requests, Late: p.late}
	g.TPOT = p.tokens
	p.readGateway(p.now, &g)
}

// Engines stand in for a gateway that counts batch lines, and what it has counted before that was
// known is forgotten. Without them, its late requests go on to count.
func TestEnginesStandInForMixedCounts(t *testing.T) {
	for _, withEngines := range []bool{true, false} {
		p := newMixedPool(t)
		p.mixture.changes = 0 // not known yet
		for range 10 {
			p.pass(withEngines)
		}
		if p.budget.left() > 0 {
			t.Fatalf("%v of the budget is left while the gateway is believed", p.budget.left())
		}
		p.mixture.changes, p.mixture.xx, p.mixture.xy, p.mixture.yy = 1000, 1e6, 1e6, 1e6
		for range 10 {
			p.pass(withEngines)
		}
		if spent := p.budget.left() < 1; spent == withEngines {
			t.Errorf("engines %v: %v of the budget is left", withEngines, p.budget.left())
		}
		if withEngines && (p.budget.late > 0 || p.budget.requests == 0) {
			t.Errorf("%v of %v requests count as late, want none of the engines'", p.budget.late,
				p.budget.requests)
		}
	}
}

// What was late is forgotten once, not each time that a gateway seems to count batch lines.
func TestOutcomesAreForgottenOnce(t *testing.T) {
	p := newMixedPool(t)
	for i := range 3 {
		p.mixture.changes = 0
		p.pass(true)
		p.pass(true)
		p.pass(true)
		p.mixture.changes, p.mixture.xx, p.mixture.xy, p.mixture.yy = 1000, 1e6, 1e6, 1e6
		p.pass(true)
		p.pass(true)
		if forgotten := p.budget.late == 0; forgotten != (i == 0) {
			t.Errorf("time %d: %v late requests are left", i, p.budget.late)
		}
	}
}

// After engines fall silent, the gateway counts again.
func TestMixedGatewaysCountWithoutEngines(t *testing.T) {
	p := newMixedPool(t)
	for range 10 {
		p.pass(true)
	}
	if !p.enginesStandIn(p.now) {
		t.Fatal("engines do not stand in")
	}
	p.now = p.now.Add(p.tuning.Staleness.StaleAfter)
	if p.gatewayAgain(); p.enginesStandIn(p.now) {
		t.Error("silent engines stand in")
	}
}

func (p *mixedPool) gatewayAgain() { p.pass(false) }
