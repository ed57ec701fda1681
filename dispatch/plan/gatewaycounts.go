package plan

import "github.com/tidefill/tidefill/flowcontrol"

// gatewayCounts adds up the interactive requests of a pool that serves several models. Gateways
// count them for each model, and flow control judges all users of its runners together. It adds up
// the growth of the counters of each model, so that the sum goes on when a model comes, goes or
// starts again.
type gatewayCounts struct {
	of  map[gatewayModel]*modelCounts
	sum *flowcontrol.Reading // nil: there has been one model only
	// turn counts the sums: each has at most one reading of each model.
	turn int
}

// gatewayModel is a model as a gateway counts it; an empty pool or model: of all.
type gatewayModel struct{ pool, model string }

type modelCounts struct {
	now  *flowcontrol.Reading
	last flowcontrol.Reading // of each counter, the last that was there
	turn int                 // of the sum that the reading is part of
}

// missedTurns is the number of sums without a reading after which a model is forgotten.
const missedTurns = 3

// add returns what is counted of all models after a reading of one; nil: others are still to be
// read in this turn.
func (g *gatewayCounts) add(m gatewayModel, r *flowcontrol.Reading) (all *flowcontrol.Reading) {
	c := g.of[m]
	if c == nil {
		if len(g.of) == 0 {
			g.of = map[gatewayModel]*modelCounts{}
		}
		c = &modelCounts{last: flowcontrol.NoReading(r.Source, r.Sampled)}
		g.of[m] = c
		g.startSum(m)
	} else if c.turn == g.turn && g.sum != nil {
		all = g.endTurn() // without the models that were not read
	}
	// One of two replicas of Prometheus may have read the gateway before the other did. What such a
	// reading lacks has been counted.
	if c.now == nil || !r.Sampled.Before(c.now.Sampled) {
		if g.sum != nil {
			addGrowth(g.sum, &c.last, r)
		}
		keepCounters(&c.last, r)
		c.now = r
	}
	c.turn = g.turn
	if g.sum == nil {
		return r
	}
	for _, other := range g.of {
		if other.turn != g.turn {
			return all
		}
	}
	return g.endTurn()
}

// startSum begins the sum with the counts of the first model when a second one comes.
func (g *gatewayCounts) startSum(second gatewayModel) {
	if g.sum != nil {
		return
	}
	for m, first := range g.of {
		if m != second {
			sum := flowcontrol.NoReading(first.now.Source, first.now.Sampled)
			keepCounters(&sum, &first.last)
			g.sum = &sum
		}
	}
}

// endTurn returns the sum, without the counters that no model of this turn shows, and forgets the
// models that are gone.
func (g *gatewayCounts) endTurn() *flowcontrol.Reading {
	all := flowcontrol.NoReading(g.sum.Source, g.sum.Sampled)
	for m, c := range g.of {
		switch {
		case c.turn == g.turn:
			showCounters(&all, g.sum, c.now)
			if c.now.Sampled.After(all.Sampled) {
				all.Sampled = c.now.Sampled
			}
		case g.turn-c.turn >= missedTurns:
			delete(g.of, m)
		}
	}
	g.sum.Sampled = all.Sampled
	g.turn++
	return &all
}
