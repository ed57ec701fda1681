package simulator

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// requestGaps measures the tokens of a replica's interactive requests that pass through the daemon:
// in each iteration every request that decodes gets one. A request that has lost its KV blocks
// counts as decoding, since it soon is again.
type requestGaps struct {
	streams int // requests that decode

	// The engine's counters at the last measurement. Valid while a request decodes.
	iterations uint64
	busy       time.Duration

	tokens, gaps int // measured and not yet reported
	time         time.Duration
	reporting    bool // the next report is in the event queue
}

// firstToken notes that a request has its first token.
func (g *requestGaps) firstToken(r *replica) {
	g.measure(r)
	g.streams++
	g.tokens++
	if !g.reporting {
		g.reporting = true
		r.sim.queue.add(r.sim.now.Add(plan.GapsInterval), func() { g.report(r) })
	}
}

// removed notes that a request has left the engine.
func (g *requestGaps) removed(r *replica, req *request) {
	if req.offer == nil || req.first.IsZero() {
		return
	}
	g.measure(r)
	g.streams--
}

// measure adds the iterations since the last measurement.
func (g *requestGaps) measure(r *replica) {
	s := r.engine.Snapshot(r.sim.now)
	if g.streams > 0 {
		n := int(s.Iterations-g.iterations) * g.streams
		g.tokens += n
		g.gaps += n
		g.time += time.Duration(g.streams) * (s.Busy - g.busy)
	}
	g.iterations, g.busy = s.Iterations, s.Busy
}

// report sends the gaps to the planner, and repeats itself while requests decode.
func (g *requestGaps) report(r *replica) {
	g.measure(r)
	if g.reporting = g.streams > 0 || g.tokens > 0; !g.reporting {
		return
	}
	sim := r.sim
	if g.tokens > 0 {
		seen := plan.RequestsDecoded{Runner: r.name, Tokens: g.tokens, Gaps: g.gaps, Time: g.time}
		g.tokens, g.gaps, g.time = 0, 0, 0
		sim.queue.add(sim.now.Add(engine.ServerDelay(0)+sim.setup.Scenario.Pool.Network),
			func() { sim.dispatcher.step(seen) })
	}
	sim.queue.add(sim.now.Add(plan.GapsInterval), func() { g.report(r) })
}
