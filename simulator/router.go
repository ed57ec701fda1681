package simulator

import (
	"math"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
)

// route sends an interactive request to the replica with the least work.
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

// viewed is a replica's work as the router sees it: what it was at the last look,
// and what the router itself has sent there since. A router that always looks
// sees the present.
func (sim *simulation) routerLoad(r *replica) float64 {
	if sim.setup.Scenario.Pool.RouterView == 0 {
		return r.work()
	}
	return r.routerLoad
}

// lookAround is the router's look at all replicas, again and again.
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

// work estimates what the replica has before it, as a router would: tokens to be
// computed, and a little for those held.
func (r *replica) work() float64 {
	s := r.engine.Snapshot(r.sim.now)
	return float64(s.PendingTokens) +
		portable.Rounded(heldTokenWeight*float64(s.KVBlocksUsed*engine.BlockSize))
}

const heldTokenWeight = 0.02
