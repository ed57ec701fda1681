package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// replica is one engine and what it has been given.
type replica struct {
	plant  *plant
	name   string
	engine *engine.Engine
	armed  time.Time // the end of what is under way, as the agenda has it
	probe  probe
}

// flight is a request inside an engine.
type flight struct {
	arrived       time.Time
	input, output int
	class         int       // of interactive traffic, by number
	first         time.Time // token; zero: none yet
	line          *attempt  // of a batch; nil: interactive
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
	err := r.engine.Submit(now, engine.Request{ID: id, Prompt: request.Input, Output: request.Output, Priority: priority, Prefix: prefix})
	if err == nil {
		r.plant.flights[id] = f
	}
	r.advance()
	return err
}

// advance brings the engine to the present and puts down when to look again.
func (r *replica) advance() {
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
		r.plant.preempted(flights[l.ID], l.Tokens)
	}
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
}

// abort gives a request up at the end of the iteration under way.
func (r *replica) abort(id engine.ID) {
	r.advance()
	if !r.engine.Abort(r.plant.now, id) {
		return // it has left already
	}
	if !r.engine.Knows(id) { // it waited, so nobody will report it
		r.plant.aborted(r.leave(id), 0)
	}
	r.advance()
}

// leave takes a request that is no longer in the engine off the books.
func (r *replica) leave(id engine.ID) *flight {
	f := r.plant.flights[id]
	delete(r.plant.flights, id)
	r.probe.left(r, f)
	return f
}

// work estimates what the replica has before it, as a router would: tokens to be
// computed, and a little for those held.
func (r *replica) work() float64 {
	s := r.engine.Snapshot(r.plant.now)
	return float64(s.PendingTokens) + float64(perHeldToken*float64(s.KVBlocksUsed*engine.BlockSize))
}

const perHeldToken = 0.02
