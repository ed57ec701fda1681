package simulator

import (
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// inline takes the place of the daemon's inline path: it offers interactive requests to the
// planner, sends those that are admitted to their runners, and reports what becomes of them. A nil
// inline belongs to a scenario with a router of its own.
type inline struct {
	sim    *simulation
	lastID uint64
	offers map[uint64]*offer // that wait or are in flight
}

// offer is a request's way through the planner, as its one field of the request.
//
//	       ask            Admit            arrive                end
//	(none) ----> waiting -------> on its way ----> in the engine ----> ended
//	                |                                                    ^
//	                +--- Refuse, or the user leaves ---------------------+
type offer struct {
	id      uint64
	req     *request
	runner  string // empty: it waits
	started time.Time
	inside  bool // it has reached the engine
	counted bool // how it ended is counted, and the daemon is about to be notified
	ended   bool
}

func newInline(sim *simulation) *inline {
	if !sim.setup.Scenario.Inline() {
		return nil
	}
	return &inline{sim: sim, offers: map[uint64]*offer{}}
}

// ask offers a request to the planner. avoid lists runners that have failed it.
func (in *inline) ask(req *request, avoid ...string) {
	sim := in.sim
	class := sim.interactive.classes[req.class]
	if sim.dispatcher.down {
		sim.interactive.turnedAway(req)
		return
	}
	in.lastID++
	o := &offer{id: in.lastID, req: req}
	req.offer = o
	in.offers[o.id] = o
	asked := &plan.Request{ID: o.id, Model: model, PromptTokens: req.input, Avoid: avoid,
		Streamed:  true,
		Objective: class.flow.Objective, Flow: flows.Flow{Class: flowClass(class.flow),
			UseCase: class.name, Tenant: class.flow.Tenant, Weight: class.flow.Weight}}
	if class.flow.Deadline > 0 {
		asked.Deadline = req.arrived.Add(class.flow.Deadline)
	}
	sim.dispatcher.step(plan.RequestCame{Request: asked})
}

// admit sends a request to the runner that the planner names.
func (in *inline) admit(a plan.Admission) {
	sim, o := in.sim, in.offers[a.ID]
	o.runner, o.started = a.Runner, sim.now
	sim.interactive.admitted(o.req, a.Waited)
	sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Network), func() {
		if !o.ended {
			in.arrive(o)
		}
	})
}

// refuse answers a request that gets no place.
func (in *inline) refuse(r plan.Refusal) {
	o := in.offers[r.ID]
	o.ended = true
	delete(in.offers, o.id)
	in.sim.interactive.turnedAway(o.req)
}

// arrive submits a request to its engine.
func (in *inline) arrive(o *offer) {
	sim, req := in.sim, o.req
	r := sim.serving[o.runner]
	if r == nil {
		in.again(req, plan.Unreachable)
		return
	}
	o.inside = true
	if err := r.submit(sim.newID(), req, req.content, priorityInteractive); err != nil {
		sim.interactive.rejected(sim.checkTooLong(req, err))
		in.respond(o, 0, &plan.RequestEnded{Outcome: plan.Refused, Status: 400})
	}
}

// again offers a request to another runner, after the loss of its own is known.
func (in *inline) again(req *request, outcome plan.Outcome) {
	o := req.offer
	o.inside = false
	in.sim.queue.add(in.sim.now.Add(in.sim.setup.Scenario.Pool.Network), func() {
		if o.ended {
			return
		}
		in.end(o, &plan.RequestEnded{Outcome: outcome})
		in.ask(req, o.runner)
	})
}

// firstToken sends a request's first token on its way back.
func (in *inline) firstToken(r *replica, req *request) {
	o := req.offer
	if o == nil {
		return
	}
	r.requestGaps.firstToken(r)
	sim := in.sim
	sim.queue.add(sim.now.Add(engine.ServerDelay(1)+sim.setup.Scenario.Pool.Network), func() {
		if !o.ended {
			sim.dispatcher.step(plan.RequestSpoke{ID: o.id, Latency: sim.now.Sub(o.started)})
		}
	})
}

// answered takes a request's answer from the engine.
func (in *inline) answered(req *request, c engine.Completion) {
	if req.offer != nil {
		in.respond(req.offer, engine.ServerDelay(c.Output), &plan.RequestEnded{
			Outcome: plan.Succeeded, Status: 200, PromptTokens: req.input,
			CachedTokens: c.Cached, OutputTokens: c.Output})
	}
}

// cutOff ends a request that its engine has aborted.
func (in *inline) cutOff(req *request) {
	if o := req.offer; o != nil && !o.ended {
		in.respond(o, 0, &plan.RequestEnded{Outcome: plan.Died})
	}
}

// respond sends the end of a request on its way back.
func (in *inline) respond(o *offer, delay time.Duration, ev *plan.RequestEnded) {
	sim := in.sim
	o.counted = true
	sim.queue.add(sim.now.Add(delay+sim.setup.Scenario.Pool.Network), func() { in.end(o, ev) })
}

// end notifies the planner of the end of a request in flight.
func (in *inline) end(o *offer, ev *plan.RequestEnded) {
	if o.ended {
		return
	}
	o.ended = true
	delete(in.offers, o.id)
	ev.ID, ev.Latency = o.id, in.sim.now.Sub(o.started)
	in.sim.dispatcher.step(ev)
}

// leave withdraws a request whose user has gone. The planner is notified at once, the engine after
// the network's delay.
func (in *inline) leave(req *request) {
	o := req.offer
	req.judged = true
	switch {
	case o.ended:
		return
	case o.runner == "":
		o.ended = true
		delete(in.offers, o.id)
		in.sim.dispatcher.step(plan.RequestLeft{ID: o.id})
	default:
		in.end(o, &plan.RequestEnded{Outcome: plan.Evicted})
		in.abort(o)
	}
}

// abort cancels a request in its engine, which notices it after the network's delay.
func (in *inline) abort(o *offer) {
	in.sim.queue.add(in.sim.now.Add(in.sim.setup.Scenario.Pool.Network), func() {
		if o.inside && o.req.replica != nil {
			o.req.replica.abort(o.req.id)
		}
	})
}

// killed cuts off all requests, whose connections went through the daemon.
func (in *inline) killed() {
	if in == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(in.offers)) {
		o := in.offers[id]
		delete(in.offers, id)
		o.ended = true
		if !o.counted && !o.req.judged {
			in.sim.interactive.lost(o.req)
		}
		o.req.judged = true
		in.abort(o)
	}
}

// outside lists the requests that have not reached an engine, oldest first.
func (in *inline) outside() (all []*request) {
	if in == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(in.offers)) {
		if o := in.offers[id]; !o.inside && !o.req.judged {
			all = append(all, o.req)
		}
	}
	return all
}

// gone reports whether a request that passed through the daemon is counted already, and is in an
// engine only until that has noticed.
func (req *request) gone() bool { return req.offer != nil && req.judged }

// back is the time from the engine to the user of an interactive request.
func (req *request) back(sim scenario.Scenario) time.Duration {
	if req.offer == nil {
		return 0
	}
	return sim.Pool.Network
}
