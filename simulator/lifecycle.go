package simulator

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// phase is a phase of a replica's life:
//
//	        add              serve            drain
//	(none) ----------> starting ----> ready ---------> draining ----> ended
//	                       |            |                 | empty, or out of time
//	                       +------------+---- crash ------+---------> ended
//
// A replica is paid for until it has ended. A replica that crashes and restarts is a new one with
// the same name.
type phase uint8

const (
	starting phase = iota
	ready
	draining
	ended
)

// start makes the replica ready after a cold start.
func (r *replica) start() {
	r.sim.queue.add(r.sim.now.Add(r.coldStart()), func() {
		if r.phase == starting {
			r.serve()
		}
	})
}

// coldStart draws the time until the replica has started. The same replica of another run takes as
// long.
func (r *replica) coldStart() time.Duration {
	s, rng := r.sim.setup.Scenario.Pool.Start, r.sim.setup.seed().Rand("start "+r.cause)
	once := func() time.Duration {
		x, _ := portable.Normals(rng)
		took := min(max(time.Duration(float64(s.Median)*portable.Exp(s.Sigma*x)), s.Min), s.Max)
		if rng.Float64() < s.NewNode {
			took += s.NodeTime
		}
		return took
	}
	took := once()
	if rng.Float64() < s.Fail {
		took += once()
	}
	return took
}

// serve makes the replica ready. The router knows it at once, the daemon after the discovery delay.
func (r *replica) serve() {
	sim := r.sim
	r.phase, r.since = ready, sim.now
	sim.serving[r.name] = r
	if sim.setup.newFiller != nil {
		sim.queue.add(sim.now, r.wakeFiller)
	}
	if share := r.pool.scaling.Reclaim; share > 0 {
		hours := portable.Exponential(sim.setup.seed().Rand("reclaim "+r.cause)) / -portable.Log(
			1-share)
		if left := sim.end.Sub(sim.now); hours < left.Hours() {
			sim.queue.add(sim.now.Add(time.Duration(hours*float64(time.Hour))), r.reclaim)
		}
	}
	sim.scaling.stepNow()
	if sim.dispatcher != nil {
		sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Discovery), func() {
			if r.phase == ready {
				sim.dispatcher.runnerUp(r)
			}
		})
	}
}

// drain ends the replica when its requests have ended: it gets no new ones, and those inside have a
// limited time.
func (r *replica) drain() {
	sim := r.sim
	switch {
	case r.phase == starting:
		r.end()
		return
	case r.phase != ready:
		return
	}
	r.phase, r.since = draining, sim.now
	if sim.dispatcher != nil {
		sim.dispatcher.runnerGone(r)
	}
	if r.inside == 0 {
		r.end()
		return
	}
	limits := sim.setup.Scenario.Pool.Drain
	sim.queue.add(sim.now.Add(limits.Batch), func() {
		for _, id := range r.requestIDs() {
			if req := sim.requests[id]; req != nil && req.line != nil {
				sim.dispatcher.cancel(req.line)
			}
		}
	})
	sim.queue.add(sim.now.Add(limits.Interactive), func() {
		for _, id := range r.requestIDs() {
			if req := sim.requests[id]; req != nil && req.line == nil && !req.gone() {
				req.judged = true
				sim.interactive.lost(req)
				r.abort(id)
			}
		}
	})
}

// endIfEmpty ends a draining replica that has no requests left.
func (r *replica) endIfEmpty() {
	if r.phase == draining && r.inside == 0 {
		r.end()
	}
}

// end removes the replica.
func (r *replica) end() {
	r.phase = ended
	if r.sim.serving[r.name] == r {
		delete(r.sim.serving, r.name)
	}
	r.pool.remove(r)
	r.sim.expected.ended(r)
	r.sim.scaling.stepNow()
}

// crash ends the replica without notice. Its batch lines fail; its interactive requests are retried
// or lost, as the scenario says. The daemon is notified after the discovery delay.
func (r *replica) crash(lost scenario.Lost) {
	sim := r.sim
	if r.phase == ended {
		return
	}
	flights := r.abortAll()
	if r.phase == ended { // it was just leaving
		return
	}
	r.end()
	if sim.dispatcher != nil {
		sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Discovery), func() {
			sim.dispatcher.runnerGone(r)
		})
	}
	for _, req := range flights {
		switch {
		case req.line != nil:
			sim.dispatcher.fail(req.line, plan.Died)
		case req.gone():
			sim.inline.cutOff(req)
		case lost == scenario.Missed:
			sim.interactive.lost(req)
			sim.inline.cutOff(req)
		case sim.inline != nil:
			req.first = time.Time{}
			sim.inline.again(req, plan.Died)
		default:
			req.first = time.Time{}
			sim.route(req)
		}
	}
}

// abortAll takes all requests out of the engine, oldest first, and counts the lost tokens.
func (r *replica) abortAll() []*request {
	r.advance()
	var flights []*request
	lost := map[engine.ID]int{}
	ids := r.requestIDs()
	for _, id := range ids {
		r.engine.Abort(r.sim.now, id)
	}
	if end, busy := r.engine.Next(); busy {
		r.engine.Advance(end, func(it *engine.Iteration) {
			for _, l := range it.Aborted {
				lost[l.ID] = l.Tokens
			}
		})
	}
	for _, id := range ids {
		req := r.remove(id)
		if req.line != nil { // of others the caller decides
			r.sim.aborted(req, lost[id])
		}
		flights = append(flights, req)
	}
	return flights
}

// requestIDs lists the requests in the engine, oldest first.
func (r *replica) requestIDs() []engine.ID {
	var ids []engine.ID
	for id, req := range r.sim.requests {
		if req.replica == r {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// reclaim ends the replica because its provider takes it back. If the number of replicas is fixed,
// another is asked for.
func (r *replica) reclaim() {
	if r.phase != ready && r.phase != draining {
		return
	}
	replace := r.phase == ready && r.pool.scaling.Max == 0
	r.crash(scenario.Retried)
	if replace {
		r.pool.add().start()
	}
}
