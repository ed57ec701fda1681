package plan

import (
	"math"
	"slices"
	"time"
)

// guard limits the requests in flight of a pool so that those with an objective keep it. It looks
// at the time per output token of their last answers, and at that of all streams, which shows a
// change sooner. The limit is for the classes after theirs: requests with an objective are limited
// by the places alone.
type guard struct {
	objective float64 // seconds per token, the shortest of the last ones; 0: there is none
	seen      time.Time
	class     int     // the last one that has requests with an objective
	bound     float64 // 0: there is none
	looked    time.Time

	gaps    int
	gapTime time.Duration
	late    []lateness // of the last answers with an objective, oldest first
}

// lateness is the time per output token of an answer, as a share of its objective.
type lateness struct {
	at    time.Time
	share float64
}

const (
	guardEvery  = 500 * time.Millisecond
	guardMemory = 5 * time.Second // of answers
	maxLateness = 512
	// guardForgets is the time without a request with an objective after which none is protected.
	guardForgets = 5 * time.Minute
	// The bound shrinks above guardHigh of the objective, and grows below guardLow.
	guardHigh, guardLow = 0.85, 0.7
	guardShrinks        = 0.85
	guardGrows          = 0.03
)

// limit returns the number of requests in flight below which one of a class may start.
func (g *guard) limit(class, places int) int {
	if g.bound == 0 || class <= g.class {
		return places
	}
	return min(places, int(g.bound))
}

// holds reports whether the bound keeps requests from starting.
func (g *guard) holds(running int) bool { return g.bound > 0 && running >= int(g.bound) }

// came notes a request with an objective of a class.
func (g *guard) came(now time.Time, objective time.Duration, class int) {
	if objective <= 0 {
		return
	}
	if now.Sub(g.seen) > guardForgets {
		*g = guard{}
	}
	g.seen = now
	if g.objective == 0 || objective.Seconds() < g.objective {
		g.objective = objective.Seconds()
	}
	g.class = max(g.class, class)
}

// answered notes the time per output token of an answer.
func (g *guard) answered(now time.Time, perToken, objective float64) {
	if len(g.late) >= maxLateness {
		g.late = slices.Delete(g.late, 0, maxLateness/4)
	}
	g.late = append(g.late, lateness{now, perToken / objective})
}

func (g *guard) decoded(ev RequestsDecoded) {
	g.gaps += ev.Gaps
	g.gapTime += ev.Time
}

// look adjusts the bound to what was seen since the last look.
func (g *guard) look(now time.Time, running int) {
	if now.Sub(g.looked) < guardEvery {
		return
	}
	g.looked = now
	gaps, took := g.gaps, g.gapTime.Seconds()
	g.gaps, g.gapTime = 0, 0
	if g.objective == 0 {
		return
	}
	if now.Sub(g.seen) > guardForgets {
		*g = guard{}
		return
	}
	share := g.lateShare(now)
	if gaps > 0 {
		share = max(share, took/float64(gaps)/g.objective)
	}
	switch {
	case share > guardHigh:
		from := float64(running)
		if g.bound > 0 {
			from = min(from, g.bound)
		}
		g.bound = max(1, guardShrinks*from)
	case g.bound > 0 && share < guardLow && running >= int(g.bound)-1:
		g.bound += max(1, guardGrows*g.bound)
	}
}

// lateShare returns the 90th percentile of the last answers' times per token, as shares of their
// objectives. 0: there are none.
func (g *guard) lateShare(now time.Time) float64 {
	from := 0
	for from < len(g.late) && now.Sub(g.late[from].at) > guardMemory {
		from++
	}
	g.late = slices.Delete(g.late, 0, from)
	if len(g.late) == 0 {
		return 0
	}
	shares := make([]float64, len(g.late))
	for i, l := range g.late {
		shares[i] = l.share
	}
	slices.Sort(shares)
	return shares[int(math.Ceil(0.9*float64(len(shares))))-1]
}
