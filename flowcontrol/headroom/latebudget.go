package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// lateBudget compares the number of interactive requests that were late because of batch work
// within the last half hour with the number that may be. It is the last resort when no bound has
// predicted them.
type lateBudget struct {
	allowed        float64 // share of requests that may be late
	requests, late float64
	began, at      time.Time
}

const (
	// saveFrom is the part of the budget from which on fewer lines run, and stopAt that from which
	// on none start. Lines that run on make some more requests late, and not all that are late are
	// charged.
	saveFrom, stopAt = 0.8, 1
	// ahead is the time to come that counts, so that a single bad minute of a new pool stops
	// nothing. The rest of the half hour can make up for it.
	ahead = time.Minute
	// freeLate is the number of late requests that prove nothing where few requests come. It is
	// small: where a hundred requests come in half an hour, each late one is a point.
	freeLate = 1.25
	// mattersFrom is the part of the budget from which on late requests matter. Where fewer than
	// fewMayBeLate may be late in half an hour, each does. Less than aWhole one never does: parts
	// are charged for what may have had other reasons.
	mattersFrom, fewMayBeLate, aWhole = 0.3, 50, 1
	// silent is the time without counts of a source after which what it has counted fades.
	silent = time.Minute
)

// read takes over requests, and those of them that were late because of batch work.
func (b *lateBudget) read(now time.Time, requests, late float64) {
	if b.began.IsZero() {
		b.began = now
	}
	keep := kept(b.at, now, shareMemory)
	b.requests = b.requests*keep + requests
	b.late = b.late*keep + late
	b.at = now
}

// fade lets what was counted fade while no source counts any more.
func (b *lateBudget) fade(now time.Time) {
	if now.Sub(b.at) >= silent && !b.began.IsZero() {
		b.read(now, 0, 0)
	}
}

// left returns which part of the lines may run that may run otherwise, 0 to 1.
func (b *lateBudget) left() float64 {
	spent := b.late / (b.mayBeLate() + freeLate)
	return min(max(0, (stopAt-spent)/(stopAt-saveFrom)), 1)
}

// mayBeLate returns the number of requests that may be late within the time that counts.
func (b *lateBudget) mayBeLate() float64 {
	requests := b.requests
	if counted := min(b.at.Sub(b.began), shareMemory); counted > 0 {
		requests += b.requests * (float64(ahead) / float64(counted))
	}
	return b.allowed * requests
}

// matters reports whether so many were late that the number of lines may have caused it. Where many
// requests come, some of those that are charged were late for reasons of their own.
func (b *lateBudget) matters() bool {
	counted := max(min(b.at.Sub(b.began), shareMemory), time.Second)
	inAll := b.allowed * (b.requests * (float64(shareMemory) / float64(counted)))
	return b.late >= aWhole &&
		(inAll < fewMayBeLate || b.late > mattersFrom*b.mayBeLate())
}

// economize lowers a grant while too many interactive requests have been late.
func (c *Controller) economize(now time.Time, r *runner, g *flowcontrol.RunnerAllowance) {
	c.boundByLate(now, r, g)
	if left := c.budget.left(); left < 1 && c.shared && !c.target.fixed() {
		lower(g, int(left*float64(g.Lines)+0.5), ReasonLate)
	}
}
