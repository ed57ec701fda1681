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
	steps  uint64    // iterations ended
}

// flight is a request inside an engine.
type flight struct {
	arrived       time.Time
	input, output int
	first         time.Time // token; zero: none yet
	line          *attempt  // of a batch; nil: interactive

	// How far it has come, for what is lost when it is computed again.
	produced int    // tokens before since
	since    uint64 // step after which it decodes
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
	for _, id := range it.Preempted {
		r.plant.preempted(r, flights[id])
	}
	for _, a := range it.Admitted {
		flights[a.ID].since = r.steps + 1
	}
	r.steps += uint64(len(it.Steps))
	for _, id := range it.First {
		f := flights[id]
		f.first, f.produced, f.since = it.End, 1, r.steps
	}
	for _, c := range it.Finished {
		f := flights[c.ID]
		delete(flights, c.ID)
		r.plant.completed(f, c)
	}
}

// computed is at most how many tokens of a request the engine has computed.
func (r *replica) computed(f *flight) int {
	if f.first.IsZero() {
		return f.input
	}
	return min(f.input+f.output, f.input+f.produced+int(r.steps-min(r.steps, f.since)))
}

// work estimates what the replica has before it, as a router would: tokens to be
// computed, and a little for those held.
func (r *replica) work() float64 {
	s := r.engine.Snapshot(r.plant.now)
	return float64(s.PendingTokens) + float64(perHeldToken*float64(s.KVBlocksUsed*engine.BlockSize))
}

const perHeldToken = 0.02
