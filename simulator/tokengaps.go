package simulator

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// tokenGaps measures a replica's iterations through its streamed lines, as the dispatcher does:
// while one of them decodes, each iteration brings it a token. A line that has lost its KV blocks
// counts as decoding, since it soon is again.
type tokenGaps struct {
	streams int // streamed lines that decode

	// The engine's counters at the last measurement. Valid while a line decodes.
	iterations uint64
	busy       time.Duration

	gaps      int // measured and not yet reported
	time      time.Duration
	reporting bool // the next report is in the event queue
}

// firstToken notes that a streamed line has its first token.
func (g *tokenGaps) firstToken(r *replica) {
	if g.streams == 0 {
		s := r.engine.Snapshot(r.sim.now)
		g.iterations, g.busy = s.Iterations, s.Busy
	}
	g.streams++
	if !g.reporting {
		g.reporting = true
		r.sim.queue.add(r.sim.now.Add(plan.GapsInterval), func() { g.report(r) })
	}
}

// removed notes that a request has left the engine.
func (g *tokenGaps) removed(r *replica, req *request) {
	if req.line == nil || !req.line.start.Stream || req.first.IsZero() {
		return
	}
	g.measure(r)
	g.streams--
}

// measure adds the iterations since the last measurement.
func (g *tokenGaps) measure(r *replica) {
	if g.streams == 0 {
		return
	}
	s := r.engine.Snapshot(r.sim.now)
	g.gaps += int(s.Iterations - g.iterations)
	g.time += s.Busy - g.busy
	g.iterations, g.busy = s.Iterations, s.Busy
}

// report sends the gaps to the planner, and repeats itself while lines decode.
func (g *tokenGaps) report(r *replica) {
	g.measure(r)
	if g.reporting = g.streams > 0 || g.gaps > 0; !g.reporting {
		return
	}
	sim := r.sim
	if g.gaps > 0 {
		seen := plan.TokenGaps{Runner: r.name, Gaps: g.gaps, Time: g.time}
		g.gaps, g.time = 0, 0
		sim.queue.add(sim.now.Add(engine.ServerDelay(0)+sim.setup.Scenario.Pool.Network),
			func() { sim.dispatcher.step(seen) })
	}
	sim.queue.add(sim.now.Add(plan.GapsInterval), func() { g.report(r) })
}
