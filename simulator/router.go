package simulator

import (
	"math"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// route sends an interactive request to a replica that is ready.
func (sim *simulation) route(req *request) {
	if sim.inline != nil {
		sim.inline.ask(req)
		return
	}
	to := sim.choose(req)
	if to == nil {
		sim.interactive.lost(req)
		return
	}
	sim.lastRouted = to.number
	to.routerLoad += sim.loadOf(req)
	if err := to.submit(sim.newID(), req, req.content, priorityInteractive); err != nil {
		sim.interactive.rejected(sim.checkTooLong(req, err))
	}
}

// choose returns the replica for a request; nil: none is ready.
func (sim *simulation) choose(req *request) *replica {
	switch sim.setup.Scenario.Pool.Router {
	case scenario.RoundRobin:
		return sim.leastLoaded(sim.lastRouted, func(*replica) float64 { return 0 })
	case scenario.LeastRequests:
		return sim.leastLoaded(sim.lastRouted, sim.routerLoad)
	case scenario.ExpectedLoad:
		return sim.expected.choose(req)
	case scenario.PrefixAffinity:
		return sim.leastLoadedOr(sim.home(req))
	default:
		return sim.leastLoaded(-1, sim.routerLoad)
	}
}

// leastLoaded returns the ready replica with the least load. Of several it is the first after a
// number, or the first of all.
func (sim *simulation) leastLoaded(after int, load func(*replica) float64) *replica {
	var best *replica
	least := math.Inf(1)
	for _, r := range sim.pools[0].replicas {
		if r.phase != ready {
			continue
		}
		w := load(r)
		if w < least || w == least && best.number <= after && r.number > after {
			best, least = r, w
		}
	}
	return best
}

const (
	// A replica has clearly more work than another if it has more than this factor and these
	// tokens more.
	clearFactor = 1.5
	clearTokens = 2000
)

// leastLoadedOr returns home, or the ready replica with the least load if home has clearly more.
func (sim *simulation) leastLoadedOr(home *replica) *replica {
	least := sim.leastLoaded(-1, sim.routerLoad)
	if home == nil || least == nil ||
		sim.routerLoad(home) > clearFactor*sim.routerLoad(least)+clearTokens {
		return least
	}
	return home
}

// home returns the ready replica for prompts with the beginning of a request's; nil: it has none
// that is known.
func (sim *simulation) home(req *request) *replica {
	var home *replica
	most := uint64(0)
	for _, r := range sim.pools[0].replicas {
		if r.phase != ready {
			continue
		}
		if w, ok := req.content.Affinity(r.number); ok && (home == nil || w > most) {
			home, most = r, w
		}
	}
	return home
}

// routerLoad returns a replica's load as the router sees it: what it was when the router last
// looked, and what the router has sent there since. With router_view 0 the router sees the present.
func (sim *simulation) routerLoad(r *replica) float64 {
	if sim.setup.Scenario.Pool.RouterView == 0 {
		return sim.presentLoad(r)
	}
	return r.routerLoad
}

// routerKV returns the share of a replica's KV blocks in use as the router sees it.
func (sim *simulation) routerKV(r *replica) float64 {
	if sim.setup.Scenario.Pool.RouterView == 0 {
		return r.engine.Snapshot(sim.now).KVUtilization()
	}
	return r.routerKV
}

// presentLoad returns a replica's load, in the unit of the router: requests or tokens.
func (sim *simulation) presentLoad(r *replica) float64 {
	if sim.setup.Scenario.Pool.Router == scenario.LeastRequests {
		return float64(r.inside)
	}
	return r.pendingWork()
}

// loadOf returns what a request adds to the load of a replica.
func (sim *simulation) loadOf(req *request) float64 {
	if sim.setup.Scenario.Pool.Router == scenario.LeastRequests {
		return 1
	}
	return float64(req.input) + heldTokenWeight*float64(req.input)
}

// refreshRouterView updates the router's view of all replicas periodically.
func (sim *simulation) refreshRouterView() {
	every := sim.setup.Scenario.Pool.RouterView
	if every == 0 {
		return
	}
	for _, r := range sim.pools[0].replicas {
		r.routerLoad = sim.presentLoad(r)
		r.routerKV = r.engine.Snapshot(sim.now).KVUtilization()
	}
	sim.queue.add(sim.now.Add(every), sim.refreshRouterView)
}

// pendingWork estimates a replica's load as a router would: tokens to compute, and a little for the
// tokens held.
func (r *replica) pendingWork() float64 {
	s := r.engine.Snapshot(r.sim.now)
	return float64(s.PendingTokens) +
		heldTokenWeight*float64(s.KVBlocksUsed*engine.BlockSize)
}

// heldTokenWeight is the load of a held token, relative to one to compute.
const heldTokenWeight = 0.02
