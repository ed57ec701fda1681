package plan

import (
	"math"
	"slices"
	"time"
)

// guard limits the requests and lines in flight of a pool so that requests with an objective keep
// it. The limit is for what comes after their class: they are limited by the places alone.
//
// Two loops set it. The fast one compares the mean time between tokens of all streams, which shows
// a change within a second, with a target. The slow one sets the target by the time per output
// token of answers with an objective, which also has the time to the first token in it: a mean
// between tokens at which one in twenty answers misses the objective is too long.
type guard struct {
	// objective is the shortest of the last minutes in seconds per token, 0: there is none, and
	// class the last one that had requests with one.
	objective float64
	class     int
	seen      time.Time
	// recent are those since turned, earlier those of the minutes before
	recent, earlier protected
	turned          time.Time
	bound           float64 // 0: there is none
	looked          time.Time

	gaps, gapTime float64 // of the last looks; the time in seconds
	// target of the time between tokens, as a share of the objective; 0: highestTarget
	target float64
	// of the answers with an objective since the last change of the target
	shares []float64
	since  time.Time
	excess bool // lines in flight beyond the bound are to be evicted
}

const (
	guardEvery = 500 * time.Millisecond
	// guardForgets is the time without a request with an objective after which none is protected.
	guardForgets = 5 * time.Minute
	// guardFades is the part of older gaps that a look keeps: some seconds, as an iteration that
	// computes prompts is several times as long as others.
	guardFades = 0.7
	// The bound shrinks above the target and grows below guardGrowsBelow of it. Above guardEvicts
	// of it, lines beyond the bound are evicted rather than awaited.
	guardGrowsBelow, guardEvicts = 0.93, 1.3
	guardShrinks, guardGrows     = 0.9, 0.02
	// The target lies between lowestTarget and highestTarget.
	lowestTarget, highestTarget = 0.4, 0.75
	// guardAnswers are enough for a 95th percentile, and judgedFor is the time for which they are
	// awaited where there are few.
	guardAnswers, maxJudged = 40, 512
	judgedFor               = time.Minute
	// The target shrinks if the 95th percentile of answers is above answersHigh of their
	// objectives, and grows if it is below answersLow.
	answersHigh, answersLow    = 0.7, 0.6
	targetShrinks, targetGrows = 0.93, 1.03
)

// limit returns the number of requests in flight below which one of a class may start.
func (g *guard) limit(class, places int) int {
	if g.bound == 0 || class <= g.class {
		return places
	}
	return min(places, int(g.bound))
}

// pacedPrompts is the number of prompt tokens on a runner beyond which requests after the protected
// class do not start: engines compute prompts in the order in which they come, so many that start
// at once make the next first token late. It is some tenths of a second for most engines.
const pacedPrompts = 2048

// pacedFor is the longest time for which a request awaits the prompts of others.
const pacedFor = 2 * time.Second

// paces reports whether requests of a class await the prompts of others.
func (g *guard) paces(class int) bool { return g.objective > 0 && class > g.class }

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
	if now.Sub(g.turned) > guardForgets/2 {
		g.earlier, g.recent, g.turned = g.recent, protected{}, now
	}
	g.recent.add(objective.Seconds(), class)
	both := g.earlier
	both.add(g.recent.objective, g.recent.class)
	g.objective, g.class = both.objective, both.class
}

// protected is the shortest objective of some requests, and the last class of them.
type protected struct {
	objective float64
	class     int
}

func (p *protected) add(objective float64, class int) {
	if p.objective == 0 || objective < p.objective {
		p.objective = objective
	}
	p.class = max(p.class, class)
}

// answered notes the time per output token of an answer.
func (g *guard) answered(now time.Time, perToken, objective float64) {
	if len(g.shares) == 0 {
		g.since = now
	}
	if len(g.shares) < maxJudged {
		g.shares = append(g.shares, perToken/objective)
	}
}

func (g *guard) decoded(ev RequestsDecoded) {
	g.gaps += float64(ev.Gaps)
	g.gapTime += ev.Time.Seconds()
}

// look adjusts the bound to what was seen since the last look. inFlight is the number of requests
// and lines.
func (g *guard) look(now time.Time, inFlight int) {
	if now.Sub(g.looked) < guardEvery {
		return
	}
	g.looked = now
	gaps, took := g.gaps, g.gapTime
	g.gaps, g.gapTime = guardFades*gaps, guardFades*took
	if g.objective == 0 {
		return
	}
	if now.Sub(g.seen) > guardForgets {
		*g = guard{}
		return
	}
	g.judge(now)
	g.excess = false
	if gaps < 1 { // nothing shows that more would harm
		if g.bound > 0 {
			g.bound++
		}
		return
	}
	share := took / gaps / g.objective / g.target
	switch settled := g.bound == 0 || inFlight <= int(g.bound)+1; {
	case share > 1 && settled: // else the last change still acts
		from := float64(inFlight)
		if g.bound > 0 {
			from = min(from, g.bound)
		}
		g.bound = max(1, guardShrinks*from)
	case g.bound > 0 && share < guardGrowsBelow && inFlight >= int(g.bound)-1:
		g.bound += max(1, guardGrows*g.bound)
	}
	g.excess = share > guardEvicts
}

// judge adjusts the target to the answers since its last change.
func (g *guard) judge(now time.Time) {
	if g.target == 0 {
		g.target = highestTarget
	}
	n := len(g.shares)
	if n == 0 || n < guardAnswers && now.Sub(g.since) < judgedFor {
		return
	}
	slices.Sort(g.shares)
	switch p95 := g.shares[(95*n+99)/100-1]; {
	case p95 > answersHigh:
		g.target = max(lowestTarget, targetShrinks*g.target)
	case p95 < answersLow:
		g.target = min(highestTarget, targetGrows*g.target)
	}
	g.shares = g.shares[:0]
}

// linesBeside returns the number of lines that may be in flight beside the pool's requests, which
// come before them.
func (p *pool) linesBeside() int {
	switch {
	case p.requests.Waiting() > 0:
		return 0
	case p.guard.bound > 0:
		return max(0, int(p.guard.bound)-p.requestsRunning)
	default:
		return math.MaxInt
	}
}

// yieldAfter is the time for which requests wait before lines that could make room for them are
// evicted: those of a moment need none to be evicted.
const yieldAfter = 250 * time.Millisecond

// yieldLines evicts lines for which there is no room beside the requests: those that keep requests
// from starting, and those by which requests with an objective miss it.
func (p *pool) yieldLines(now time.Time, out *Actions) {
	waiting := p.requests.Waiting()
	if waiting == 0 {
		p.waitingSince = time.Time{}
	} else if p.waitingSince.IsZero() {
		p.waitingSince = now
	}
	beyond := 0
	if waiting > 0 && p.guard.holds(p.requestsRunning) && now.Sub(p.waitingSince) >= yieldAfter {
		beyond = min(waiting, p.inFlight)
	}
	if p.guard.excess {
		beyond = max(beyond, p.inFlight-max(0, int(p.guard.bound)-p.requestsRunning))
	}
	for _, r := range p.runners {
		n := min(beyond, len(r.lines.lines))
		if n > 0 {
			out.Evict = r.lines.evict(r.id, len(r.lines.lines)-n, out.Evict)
			beyond -= n
		}
	}
}
