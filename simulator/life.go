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
	gone
)

// start lets a replica come up by itself.
func (r *replica) start() {
	r.plant.agenda.put(r.plant.now.Add(r.coldStart()), func() {
		if r.phase == starting {
			r.serve()
		}
	})
}

// coldStart draws how long a replica takes to come up. The same replica of another
// run takes as long.
func (r *replica) coldStart() time.Duration {
	s, rng := r.plant.setup.Scenario.Pool.Start, r.plant.setup.seed().Cause("start "+r.cause)
	once := func() time.Duration {
		x, _ := portable.Normals(rng)
		took := min(max(time.Duration(float64(s.Median)*portable.Exp(s.Sigma*x)), s.Least), s.Most)
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
	p := r.plant
	r.phase, r.since = ready, p.now
	p.serving[r.name] = r
	if p.setup.inside != nil {
		p.agenda.put(p.now, r.wakeInside)
	}
	if share := r.pool.scaled.Reclaim; share > 0 {
		hours := portable.Exponential(p.setup.seed().Cause("reclaim "+r.cause)) / -portable.Log(
			1-share)
		if left := p.end.Sub(p.now); hours < left.Hours() {
			p.agenda.put(p.now.Add(time.Duration(hours*float64(time.Hour))), r.reclaim)
		}
	}
	p.scaling.happened()
	if p.batches != nil {
		p.agenda.put(p.now.Add(p.setup.Scenario.Pool.Discovery), func() {
			if r.phase == ready {
				p.batches.runnerUp(r)
			}
		})
	}
}

// drain lets a replica go: it gets nothing new, what it has may end for a while.
func (r *replica) drain() {
	p := r.plant
	switch {
	case r.phase == starting:
		r.end()
		return
	case r.phase != ready:
		return
	}
	r.phase, r.since = draining, p.now
	if p.batches != nil {
		p.batches.runnerGone(r)
	}
	if r.load == 0 {
		r.end()
		return
	}
	limits := p.setup.Scenario.Pool.Drain
	p.agenda.put(p.now.Add(limits.Batch), func() {
		for _, id := range r.inside() {
			if f := p.flights[id]; f != nil && f.line != nil {
				p.batches.hangUp(f.line)
			}
		}
	})
	p.agenda.put(p.now.Add(limits.Interactive), func() {
		for _, id := range r.inside() {
			if f := p.flights[id]; f != nil && f.line == nil {
				f.cut = true
				p.users.lost(f)
				r.abort(id)
			}
		}
	})
}

// emptied ends a draining replica that has nothing left.
func (r *replica) emptied() {
	if r.phase == draining && r.load == 0 {
		r.end()
	}
}

// end takes a replica out of the world.
func (r *replica) end() {
	r.phase = gone
	if r.plant.serving[r.name] == r {
		delete(r.plant.serving, r.name)
	}
	r.pool.remove(r)
	r.plant.scaling.happened()
}

// die ends a replica without a word. Its batch lines have died; its interactive
// requests go the way the scenario says. The daemon hears of it later.
func (r *replica) die(lost scenario.Lost) {
	p := r.plant
	if r.phase == gone {
		return
	}
	flights := r.collapse()
	if r.phase == gone { // it was just leaving
		return
	}
	r.end()
	if p.batches != nil {
		p.agenda.put(p.now.Add(p.setup.Scenario.Pool.Discovery), func() { p.batches.runnerGone(r) })
	}
	for _, f := range flights {
		switch {
		case f.line != nil:
			p.batches.broken(f.line, plan.Died)
		case lost == scenario.Missed:
			p.users.lost(f)
		default:
			f.first = time.Time{}
			p.route(f)
		}
	}
}

// collapse takes everything out of the engine, oldest first, and books what is
// lost.
func (r *replica) collapse() []*flight {
	r.advance()
	var flights []*flight
	lost := map[engine.ID]int{}
	ids := r.inside()
	for _, id := range ids {
		r.engine.Abort(r.plant.now, id)
	}
	if end, busy := r.engine.Next(); busy {
		r.engine.Advance(end, func(it *engine.Iteration) {
			for _, l := range it.Aborted {
				lost[l.ID] = l.Tokens
			}
		})
	}
	for _, id := range ids {
		f := r.leave(id)
		r.plant.aborted(f, lost[id])
		flights = append(flights, f)
	}
	return flights
}

// inside lists the requests in the engine, oldest first.
func (r *replica) inside() []engine.ID {
	var ids []engine.ID
	for id, f := range r.plant.flights {
		if f.replica == r {
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
	r.die(scenario.Retried)
	if replace {
		r.pool.add().start()
	}
}

// strike puts the scenario's faults on the agenda.
func (p *plant) strike() {
	for _, f := range p.setup.Scenario.Faults {
		p.agenda.put(epoch.Add(f.At), func() {
			for _, r := range p.struck(f) {
				r.suffer(f)
			}
		})
	}
}

// struck are the replicas that a fault is about and that are there.
func (p *plant) struck(f scenario.Fault) []*replica {
	x := p.poolNamed(f.Pool)
	if len(f.Replicas) == 0 {
		return x.replicas
	}
	var struck []*replica
	for _, number := range f.Replicas {
		if r := x.replica(number); r != nil {
			struck = append(struck, r)
		}
	}
	return struck
}

func (r *replica) suffer(f scenario.Fault) {
	p := r.plant
	switch f.Kind {
	case scenario.Die:
		r.die(f.Lost)
		if f.For > 0 {
			again := r.pool.again(r.number)
			p.agenda.put(p.now.Add(f.For), func() {
				if again.phase == starting {
					again.serve()
				}
			})
		}
	case scenario.Slow:
		r.pace(f.Factor)
		p.agenda.put(p.now.Add(f.For), func() { r.pace(1) })
	case scenario.Stall:
		r.advance()
		r.engine.Stall(p.now, f.For)
		r.advance()
	case scenario.Flush:
		r.advance()
		r.engine.FlushCache(p.now)
		r.advance()
	}
}

// pace makes iterations take a multiple of their time.
func (r *replica) pace(factor float64) {
	if r.phase == gone {
		return
	}
	r.advance()
	r.engine.SetPace(r.plant.now, factor)
	r.advance()
}
