package simulator

import (
	"math"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
)

// route sends an interactive request to the replica with the least load.
func (sim *simulation) route(req *request) {
	var best *replica
	least := math.Inf(1)
	for _, r := range sim.pools[0].replicas {
		if r.phase != ready {
			continue
		}
		if w := sim.routerLoad(r); w < least {
			best, least = r, w
		}
	}
	if best == nil {
		sim.interactive.lost(req)
		return
	}
	best.routerLoad += float64(req.input) + portable.Rounded(heldTokenWeight*float64(req.input))
	if err := best.submit(sim.newID(), req, req.content, priorityInteractive); err != nil {
		sim.interactive.rejected(sim.checkTooLong(req, err))
	}
}

// routerLoad returns a replica's load as the router sees it: what it was when the router last
// looked, and what the router has sent there since. With router_view 0 the router sees the present.
func (sim *simulation) routerLoad(r *replica) float64 {
	if sim.setup.Scenario.Pool.RouterView == 0 {
		return r.work()
	}
	return r.routerLoad
}

// refreshRouterView updates the router's view of all replicas periodically.
func (sim *simulation) refreshRouterView() {
	every := sim.setup.Scenario.Pool.RouterView
	if every == 0 {
		return
	}
	for _, r := range sim.pools[0].replicas {
		r.routerLoad = r.work()
	}
	sim.queue.add(sim.now.Add(every), sim.refreshRouterView)
}

// work estimates a replica's load as a router would: tokens to compute, and a little for the tokens
// held.
func (r *replica) work() float64 {
	s := r.engine.Snapshot(r.sim.now)
	return float64(s.PendingTokens) +
		portable.Rounded(heldTokenWeight*float64(s.KVBlocksUsed*engine.BlockSize))
}

// heldTokenWeight is the load of a held token, relative to one to compute.
const heldTokenWeight = 0.02
