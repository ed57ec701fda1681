package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// replica is one engine and the requests given to it.
type replica struct {
	sim        *simulation
	pool       *pool
	name       string
	cause      string // name of its random sequence: its name, and the number of its builds
	number     int    // within its pool
	phase      phase
	created    time.Time // when it was asked for; it is paid for from then on
	since      time.Time // when its phase began
	inside     int       // requests in the engine
	routerLoad float64   // its load as the router last saw it
	routerKV   float64   // the share of its KV blocks in use as the router last saw it
	work       float64   // expected, of the requests inside; in milliseconds; see expectedLoad
	engine     *engine.Engine
	shedUntil  time.Time          // batch lines are answered 429 until then
	wrong      scenario.FaultKind // batch lines are answered so until wrongUntil
	wrongUntil time.Time
	slowed     []*scenario.Fault // that are in effect, in the order of their begin
	nextEnd    time.Time         // end of the iteration in progress, as scheduled
	tokenGaps  tokenGaps
	// of interactive requests that pass through the daemon
	requestGaps requestGaps
	// requests aborted while they waited and an iteration ran, which may report that it had
	// preempted them
	abortedWaiting map[engine.ID]*request
}

// submit hands a request to the engine.
func (r *replica) submit(id engine.ID, req *request, content workload.Request, priority int) error {
	now := r.sim.now
	r.advance()
	blocks := content.Blocks(nil, engine.BlockSize)
	prefix := make([]engine.Hash, len(blocks))
	for i, b := range blocks {
		prefix[i] = engine.Hash(b)
	}
	err := r.engine.Submit(now, engine.Request{ID: id, Prompt: content.Input,
		Output: content.Output, Priority: priority, Prefix: prefix})
	if err == nil {
		r.sim.requests[id] = req
		req.id, req.replica = id, r
		r.inside++
		r.sim.expected.submitted(r, req, content)
	}
	r.advance()
	return err
}

// advance brings the engine to the present and schedules the next call.
func (r *replica) advance() {
	if r.phase == ended {
		return
	}
	r.engine.Advance(r.sim.now, r.observe)
	if end, busy := r.engine.Next(); busy && !end.Equal(r.nextEnd) {
		r.nextEnd = end
		r.sim.queue.add(end, r.advance)
	}
}

// observe takes the engine's report of an iteration.
func (r *replica) observe(it *engine.Iteration) {
	flights := r.sim.requests
	for _, l := range it.Preempted {
		req := flights[l.ID]
		if req == nil {
			req = r.abortedWaiting[l.ID]
		}
		r.sim.preempted(req, l.Tokens)
	}
	clear(r.abortedWaiting)
	for _, id := range it.First {
		req := flights[id]
		req.first = it.End
		r.sim.firstToken(r, req)
	}
	for _, c := range it.Finished {
		r.sim.completed(r.remove(c.ID), c)
	}
	for _, l := range it.Aborted {
		r.sim.aborted(r.remove(l.ID), l.Tokens)
	}
	r.endIfEmpty()
}

// abort cancels a request at the end of the iteration in progress.
func (r *replica) abort(id engine.ID) {
	r.advance()
	if !r.engine.Abort(r.sim.now, id) {
		return // it has left already
	}
	if !r.engine.Has(id) { // it waited, so no iteration will report it
		req := r.remove(id)
		if r.abortedWaiting == nil {
			r.abortedWaiting = map[engine.ID]*request{}
		}
		r.abortedWaiting[id] = req
		r.sim.aborted(req, 0)
	}
	r.advance()
	r.endIfEmpty()
}

// remove forgets a request that is no longer in the engine.
func (r *replica) remove(id engine.ID) *request {
	req := r.sim.requests[id]
	delete(r.sim.requests, id)
	r.inside--
	r.tokenGaps.removed(r, req)
	r.sim.expected.removed(r, req)
	r.requestGaps.removed(r, req)
	return req
}
