package simulator

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// probe sees a replica's iterations through its streamed lines, as the dispatcher
// does: while one of them decodes, each iteration brings it a token. A line that
// has lost its KV blocks counts as decoding, since it soon is again.
type probe struct {
	streams int // streamed lines that decode

	// From the last look on, while a line decodes.
	iterations uint64
	busy       time.Duration

	gaps    int // seen and not told
	time    time.Duration
	ticking bool
}

// begun notes that a streamed line has its first token.
func (p *probe) begun(r *replica) {
	if p.streams == 0 {
		s := r.engine.Snapshot(r.sim.now)
		p.iterations, p.busy = s.Iterations, s.Busy
	}
	p.streams++
	if !p.ticking {
		p.ticking = true
		r.sim.queue.add(r.sim.now.Add(plan.GapsEvery), func() { p.tell(r) })
	}
}

// left notes that a request has left the engine.
func (p *probe) left(r *replica, req *request) {
	if req.line == nil || !req.line.start.Stream || req.first.IsZero() {
		return
	}
	p.look(r)
	p.streams--
}

// look adds what has passed since the last look.
func (p *probe) look(r *replica) {
	if p.streams == 0 {
		return
	}
	s := r.engine.Snapshot(r.sim.now)
	p.gaps += int(s.Iterations - p.iterations)
	p.time += s.Busy - p.busy
	p.iterations, p.busy = s.Iterations, s.Busy
}

// tell sends what was seen on its way to the planner, and goes on for as long as
// there is something to see.
func (p *probe) tell(r *replica) {
	p.look(r)
	if p.ticking = p.streams > 0 || p.gaps > 0; !p.ticking {
		return
	}
	sim := r.sim
	if p.gaps > 0 {
		seen := plan.TokenGaps{Runner: r.name, Gaps: p.gaps, Time: p.time}
		p.gaps, p.time = 0, 0
		sim.queue.add(sim.now.Add(engine.ServerDelay(0)+sim.setup.Scenario.Pool.Network),
			func() { sim.dispatcher.step(seen) })
	}
	sim.queue.add(sim.now.Add(plan.GapsEvery), func() { p.tell(r) })
}
