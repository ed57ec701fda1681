package simulator

import (
	"math"

	"github.com/tidefill/tidefill/simulator/engine"
)

// route sends an interactive request to the replica with the least work.
func (p *plant) route(f *flight) {
	var best *replica
	least := math.Inf(1)
	for _, r := range p.pools[0].replicas {
		if r.phase != ready {
			continue
		}
		if w := p.viewed(r); w < least {
			best, least = r, w
		}
	}
	if best == nil {
		p.users.lost(f)
		return
	}
	best.view += float64(f.input) + float64(perHeldToken*float64(f.input))
	if err := best.submit(p.newID(), f, f.request, priorityInteractive); err != nil {
		p.users.refused(p.refusal(f, err))
	}
}

// viewed is a replica's work as the router sees it: what it was at the last look,
// and what the router itself has sent there since. A router that always looks
// sees the present.
func (p *plant) viewed(r *replica) float64 {
	if p.setup.Scenario.Pool.RouterView == 0 {
		return r.work()
	}
	return r.view
}

// lookAround is the router's look at all replicas, again and again.
func (p *plant) lookAround() {
	every := p.setup.Scenario.Pool.RouterView
	if every == 0 {
		return
	}
	for _, r := range p.pools[0].replicas {
		r.view = r.work()
	}
	p.agenda.put(p.now.Add(every), p.lookAround)
}

// work estimates what the replica has before it, as a router would: tokens to be
// computed, and a little for those held.
func (r *replica) work() float64 {
	s := r.engine.Snapshot(r.plant.now)
	return float64(s.PendingTokens) + float64(perHeldToken*float64(s.KVBlocksUsed*engine.BlockSize))
}

const perHeldToken = 0.02
