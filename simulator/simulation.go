package simulator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// The engine's priorities: lower goes first.
const (
	priorityInteractive = 0
	priorityBatch       = 10
)

// simulation is the pools in virtual time, with their users.
type simulation struct {
	setup       Setup
	now, end    time.Time
	queue       eventQueue
	pools       []*pool
	replicas    []*replica             // of all pools
	serving     map[string]*replica    // by name, including those that drain
	requests    map[engine.ID]*request // inside the engines
	lastID      engine.ID
	lastRouted  int           // number of the replica that got the last interactive request
	expected    *expectedLoad // nil: the router is another
	traffic     workload.Stream
	interactive *interactiveStats
	scaling     *scaling
	withBatch   bool
	alone       []bool      // the classes of traffic that come; nil: all
	inline      *inline     // nil: interactive requests have a router of their own
	dispatcher  *dispatcher // nil: a run without batch work whose requests have such a router
}

func newSimulation(s Setup, withBatch bool) (*simulation, error) {
	sim := &simulation{setup: s, now: epoch, end: epoch.Add(s.Scenario.Horizon),
		requests: map[engine.ID]*request{}, serving: map[string]*replica{}, lastRouted: -1,
		withBatch: withBatch}
	sim.interactive = newInteractiveStats(s)
	sim.inline = newInline(sim)
	if s.alone {
		sim.alone, _ = s.firstFlows()
	}
	sim.scaling = newScaling(sim)
	if s.Scenario.Pool.Router == scenario.ExpectedLoad {
		sim.expected = newExpectedLoad(sim)
	}
	if err := newPools(sim); err != nil {
		return nil, err
	}
	sim.refreshRouterView()
	sim.scheduleFaults()
	var err error
	if sim.traffic, err = s.Traffic(); err != nil {
		return nil, fmt.Errorf("interactive traffic: %w", err)
	}
	if _, err = sim.startUsers(); err != nil {
		return nil, err
	}
	sim.nextArrival()
	if withBatch || sim.inline != nil {
		sim.interactive.gateway = newGateway(s.Scenario.Metrics, s.objectives())
		if sim.dispatcher, err = newDispatcher(sim); err != nil {
			return nil, err
		}
	}
	if s.newFiller != nil {
		if err = sim.scheduleFillers(); err != nil {
			return nil, err
		}
	}
	return sim, sim.scaling.begin()
}

// run advances to an instant.
func (sim *simulation) run(to time.Time) {
	for {
		at, do, ok := sim.queue.next(to)
		if !ok {
			sim.now = to
			return
		}
		sim.now = at
		do()
	}
}

func (sim *simulation) nextArrival() {
	a, ok := sim.traffic.Next()
	if !ok {
		return
	}
	sim.queue.add(epoch.Add(a.At), func() {
		sim.arrive(a)
		sim.nextArrival()
	})
}

// arrive sends an interactive request for the first time.
func (sim *simulation) arrive(a workload.Arrival) {
	class := sim.interactive.byName[a.Class] // unknown classes count as the first
	if sim.alone != nil && !sim.alone[class] {
		return
	}
	sim.send(&request{arrived: sim.now, class: class, input: a.Input, output: a.Output,
		content: a.Request})
}

// send routes one try of a request.
func (sim *simulation) send(req *request) {
	req.sent = sim.now
	sim.scaling.arrived++
	sim.route(req)
}

func (sim *simulation) newID() engine.ID {
	sim.lastID++
	return sim.lastID
}

// checkTooLong panics unless the engine refused the request because it is too long. It returns the
// request.
func (sim *simulation) checkTooLong(req *request, err error) *request {
	if !errors.Is(err, engine.ErrTooLong) {
		panic(fmt.Sprintf("simulator: %v", err))
	}
	return req
}

// completed takes a finished request from an engine.
func (sim *simulation) completed(req *request, c engine.Completion) {
	if sim.dispatcher != nil {
		sim.dispatcher.observers.served(sim.now, req, c)
	}
	if g := sim.interactive.gateway; g.counts(req) {
		g.finished(req, c, sim.interactive.classes[req.class].slo)
	}
	sim.expected.finished(req, c.Output)
	if req.gone() {
		sim.inline.cutOff(req)
		return
	}
	if req.line == nil {
		sim.scaling.served(req, c)
		sim.interactive.finished(req, c)
		sim.inline.answered(req, c)
		return
	}
	sim.dispatcher.answered(req, c)
}

// firstToken counts a request's first token.
func (sim *simulation) firstToken(r *replica, req *request) {
	sim.expected.firstToken(r, req)
	if g := sim.interactive.gateway; g.counts(req) {
		g.firstToken(req, sim.interactive.classes[req.class].slo)
	}
	if req.line == nil {
		sim.interactive.firstToken(r, req)
		sim.inline.firstToken(r, req)
	} else if req.line.start.Stream {
		r.tokenGaps.firstToken(r)
		sim.dispatcher.firstToken(req.line)
	}
}

// preempted counts what a request loses with its KV blocks.
func (sim *simulation) preempted(req *request, tokens int) {
	if req.line != nil {
		sim.dispatcher.preempted(tokens)
	}
}

// aborted takes a request that was aborted from an engine.
func (sim *simulation) aborted(req *request, tokens int) {
	if req.line != nil {
		sim.dispatcher.wasted += int64(tokens)
		return
	}
	sim.inline.cutOff(req)
}

// abandon cancels an interactive request whose user has gone.
func (sim *simulation) abandon(req *request) {
	if req.offer != nil {
		sim.inline.leave(req)
		return
	}
	req.replica.abort(req.id)
}

// unfinished lists the interactive requests inside the engines and those on their way there, each
// of them oldest first.
func (sim *simulation) unfinished() []*request {
	var left []*request
	for _, id := range slices.Sorted(maps.Keys(sim.requests)) {
		if req := sim.requests[id]; req.line == nil && !req.judged {
			left = append(left, req)
		}
	}
	return append(left, sim.inline.outside()...)
}
