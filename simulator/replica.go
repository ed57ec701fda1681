package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// replica is one engine and what it has been given.
type replica struct {
	plant  *plant
	pool   *pool
	name   string
	cause  string // of its randomness: its name, and which of its lives this is
	number int    // within its pool
	phase  phase
	asked  time.Time // from then on it is paid for
	since  time.Time // it is in its phase
	load   int       // requests inside
	view   float64   // its work, as the router last saw it
	engine *engine.Engine
	armed  time.Time // the end of what is under way, as the agenda has it
	probe  probe
	// that left the queue while an iteration ran, at whose start they may have lost their place
	fled map[engine.ID]*flight
}

// flight is a request inside an engine.
type flight struct {
	arrived       time.Time // the request
	sent          time.Time // this try of it
	id            engine.ID
	input, output int
	class         int       // of interactive traffic, by number
	first         time.Time // token; zero: none yet
	line          *attempt  // of a batch; nil: interactive
	replica       *replica
	cut           bool             // judged already, and leaving
	request       workload.Request // of an interactive one, should it have to go elsewhere
	person        *person          // who asks; nil: somebody who asks once
}

// submit hands a request to the engine.
func (r *replica) submit(id engine.ID, f *flight, request workload.Request, priority int) error {
	now := r.plant.now
	r.advance()
	blocks := request.Blocks(nil, engine.BlockSize)
	prefix := make([]engine.Hash, len(blocks))
	for i, b := range blocks {
		prefix[i] = engine.Hash(b)
	}
	err := r.engine.Submit(now, engine.Request{ID: id, Prompt: request.Input,
		Output: request.Output, Priority: priority, Prefix: prefix})
	if err == nil {
		r.plant.flights[id] = f
		f.id, f.replica = id, r
		r.load++
	}
	r.advance()
	return err
}

// advance brings the engine to the present and puts down when to look again.
func (r *replica) advance() {
	if r.phase == gone {
		return
	}
	r.engine.Advance(r.plant.now, r.see)
	if end, busy := r.engine.Next(); busy && !end.Equal(r.armed) {
		r.armed = end
		r.plant.agenda.put(end, r.advance)
	}
}

// see takes the engine's report of what has ended.
func (r *replica) see(it *engine.Iteration) {
	flights := r.plant.flights
	for _, l := range it.Preempted {
		f := flights[l.ID]
		if f == nil {
			f = r.fled[l.ID]
		}
		r.plant.preempted(f, l.Tokens)
	}
	clear(r.fled)
	for _, id := range it.First {
		f := flights[id]
		f.first = it.End
		r.plant.begun(r, f)
	}
	for _, c := range it.Finished {
		r.plant.completed(r.leave(c.ID), c)
	}
	for _, l := range it.Aborted {
		r.plant.aborted(r.leave(l.ID), l.Tokens)
	}
	r.emptied()
}

// abort gives a request up at the end of the iteration under way.
func (r *replica) abort(id engine.ID) {
	r.advance()
	if !r.engine.Abort(r.plant.now, id) {
		return // it has left already
	}
	if !r.engine.Knows(id) { // it waited, so nobody will report it
		f := r.leave(id)
		if r.fled == nil {
			r.fled = map[engine.ID]*flight{}
		}
		r.fled[id] = f
		r.plant.aborted(f, 0)
	}
	r.advance()
	r.emptied()
}

// leave takes a request that is no longer in the engine off the books.
func (r *replica) leave(id engine.ID) *flight {
	f := r.plant.flights[id]
	delete(r.plant.flights, id)
	r.load--
	r.probe.left(r, f)
	return f
}
