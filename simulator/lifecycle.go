package simulator

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// phase of a replica's life:
//
//	        asked for        serve            drain
//	(none) ----------> starting ----> ready ---------> draining ----> gone
//	                       |            |                 | empty, or cut off
//	                       +------------+---- die --------+---------> gone
//
// A replica is paid for until it is gone. One that dies and comes back is another
// with the same name.
type phase uint8

const (
	starting phase = iota
	ready
	draining
	ended
)

// start lets a replica come up by itself.
func (r *replica) start() {
	r.sim.queue.add(r.sim.now.Add(r.coldStart()), func() {
		if r.phase == starting {
			r.serve()
		}
	})
}

// coldStart draws how long a replica takes to come up. The same replica of another
// run takes as long.
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

// serve makes a replica ready. The router knows at once, the daemon when it hears
// of it; of a replica that was there from the beginning it knows.
func (r *replica) serve() {
	sim := r.sim
	r.phase, r.since = ready, sim.now
	sim.serving[r.name] = r
	if sim.setup.newFiller != nil {
		sim.queue.add(sim.now, r.wakeFiller)
	}
	if share := r.pool.scaled.Reclaim; share > 0 {
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

// drain lets a replica go: it gets nothing new, what it has may end for a while.
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
			if req := sim.requests[id]; req != nil && req.line == nil {
				req.judged = true
				sim.interactive.lost(req)
				r.abort(id)
			}
		}
	})
}

// emptied ends a draining replica that has nothing left.
func (r *replica) endIfEmpty() {
	if r.phase == draining && r.inside == 0 {
		r.end()
	}
}

// end takes a replica out of the world.
func (r *replica) end() {
	r.phase = ended
	if r.sim.serving[r.name] == r {
		delete(r.sim.serving, r.name)
	}
	r.pool.remove(r)
	r.sim.scaling.stepNow()
}

// die ends a replica without a word. Its batch lines have died; its interactive
// requests go the way the scenario says. The daemon hears of it later.
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
		sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Discovery), func() { sim.dispatcher.runnerGone(r) })
	}
	for _, req := range flights {
		switch {
		case req.line != nil:
			sim.dispatcher.fail(req.line, plan.Died)
		case lost == scenario.Missed:
			sim.interactive.lost(req)
		default:
			req.first = time.Time{}
			sim.route(req)
		}
	}
}

// collapse takes everything out of the engine, oldest first, and books what is
// lost.
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
		r.sim.aborted(req, lost[id])
		flights = append(flights, req)
	}
	return flights
}

// inside lists the requests in the engine, oldest first.
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

// reclaim is the provider's taking the replica back. Where the number of replicas
// stands still, another is asked for.
func (r *replica) reclaim() {
	if r.phase != ready && r.phase != draining {
		return
	}
	replace := r.phase == ready && r.pool.scaled.Max == 0
	r.crash(scenario.Retried)
	if replace {
		r.pool.add().start()
	}
}
