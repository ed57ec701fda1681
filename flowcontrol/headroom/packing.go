package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// packing decides on the number of runners that carry as many batch lines as fit, whatever that
// does to their iterations. It pays where the router sends interactive requests to runners with
// less load: then full runners harm nobody, and the others are free. Whether the router does so
// shows in the interactive requests on a runner whose lines grow.
type packing struct {
	runners int       // the first runners that are packed
	changed time.Time // when that was decided
	until   time.Time // no runner is packed before; after a trial that failed
	pause   time.Duration
}

const (
	// packEvery is the least time between two decisions: about what a runner takes to fill.
	packEvery = 90 * time.Second
	// packHistory is the least time for which the pool's load must have been observed.
	packHistory = 5 * time.Minute
	// packBlind is the greatest age of the metrics that show the interactive requests on a runner.
	packBlind = 40 * time.Second
	// packGain is the factor by which the harvest must grow for the first runner to be packed.
	packGain = 2
	// packGrowth is the growth of the lines of a runner that is filled, as a share in a second.
	packGrowth = 0.04
	// avoided is the share of the interactive requests of a mean runner up to which a runner counts
	// as avoided by the router.
	avoided = 0.25
	// packSign is the time after which the router must have begun to avoid a runner that fills.
	packSign = 40 * time.Second
	// visitWindow is the time over which the interactive requests on a packed runner are averaged.
	visitWindow = 10 * time.Second
	// fewUsers is the number of interactive requests that may always run on a runner that begins to
	// be filled.
	fewUsers = 0.5
	// rounding is the greatest error of our own count of interactive requests.
	rounding = 0.02
	// firstPause is the time without a trial after the router did not avoid a runner. It doubles
	// with each failure, up to longestPause.
	firstPause, longestPause = 5 * time.Minute, 4 * time.Hour
)

// updatePacking decides again on the number of packed runners and of their lines. It is called
// every second.
func (c *Controller) updatePacking(now time.Time, dt time.Duration) {
	p := &c.packing
	// Runners may have left; one is always left to users.
	p.runners = min(p.runners, max(0, len(c.roster.Members)-1))
	switch {
	case !c.mayPack(now):
		p.runners = 0
	case p.runners > 0 && !c.mixture.mixed() && c.outcomes.harm(c.quiet.tpot()+c.quiet.ttft()):
		p.giveUp(now, p.runners-1)
	case now.Sub(p.changed) >= packEvery && !now.Before(p.until):
		if best := c.bestPacked(); best > p.runners && c.lastIsAvoided() && c.mayTry() {
			p.runners, p.changed = p.runners+1, now
		} else if best < p.runners {
			p.runners, p.changed = p.runners-1, now
		}
	}
	mean := 0.0
	for _, m := range c.roster.Members {
		mean += m.State.interactive.running.mean
	}
	mean /= float64(len(c.roster.Members))
	for i, m := range c.roster.Members {
		if r := m.State; i >= p.runners || !c.pack(now, dt, r, mean) {
			r.packed = 0
			if i < p.runners {
				p.giveUp(now, i)
			}
		}
	}
}

// lastIsAvoided reports whether the router avoids the runner that was packed last, so that another
// one may be.
func (c *Controller) lastIsAvoided() bool {
	n := c.packing.runners
	return n == 0 || c.roster.Members[n-1].State.avoided
}

// mayTry reports whether the next runner may be filled. As long as it is not known that the router
// avoids a full one, the requests that run there are at stake: they must be few, or few of all.
func (c *Controller) mayTry() bool {
	if c.packing.runners > 0 {
		return true
	}
	few := max(fewUsers, c.slo.Late*c.budget.requests/2)
	return c.roster.Members[0].State.interactive.running.mean <= few
}

// giveUp leaves some runners packed, and no more for a while. Several in a row are one failure.
func (p *packing) giveUp(now time.Time, runners int) {
	p.runners, p.changed = runners, now
	if !now.Before(p.until) {
		p.pause = min(max(firstPause, 2*p.pause), longestPause)
	}
	p.until = now.Add(p.pause)
}

// pack lets the lines of a packed runner grow. mean is the mean number of interactive requests on a
// runner of the pool. It returns false if this one is not avoided.
func (c *Controller) pack(now time.Time, dt time.Duration, r *runner, mean float64) bool {
	if r.packed == 0 {
		r.packed, r.packedAt, r.visits = max(c.lines, 1), now, spread{}
		c.beginStay(r)
		if c.resume.until.After(now) {
			r.packedAt = c.resume.until // until then it is not meant to be full
		}
	}
	r.visits.add(now, visitWindow, r.interactive.running.mean)
	filling := now.Sub(r.packedAt)
	visits := r.visits.mean - rounding
	came := c.stay(r)
	if came.known && came.visited() {
		return false
	}
	few := avoided * mean
	r.avoided = visits <= few && (!came.known || came.avoided())
	if visits > few {
		switch { // it takes lines to be avoided
		case filling > packSign && visits > 3*few:
			return false
		case filling > packEvery:
			return visits <= 2*few
		}
	}
	if float64(r.own.lines) >= r.packed-2 { // else it has not filled what it has
		r.packed += dt.Seconds() * (1 + packGrowth*r.packed)
	}
	_, held := c.resume.heldBack(now)
	r.packed = min(r.packed, float64(c.cfg.PerRunner), held)
	return true
}

// mayPack reports whether lines can be kept to some runners, and whether it can be seen what that
// does.
func (c *Controller) mayPack(now time.Time) bool {
	members := c.roster.Members
	if !c.shared || c.target.fixed() || len(members) < 2 ||
		c.alone.iteration.age < packHistory.Seconds() {
		return false
	}
	for _, m := range members {
		if seen := m.State.interactive.seenAt; seen.IsZero() || now.Sub(seen) > packBlind ||
			m.State.access != flowcontrol.Direct {
			return false
		}
	}
	return true
}

// bestPacked returns the number of packed runners with which the cost model expects the most
// tokens.
func (c *Controller) bestPacked() int {
	n := len(c.roster.Members)
	if n == 0 {
		return 0
	}
	model, mix := c.fit.fitted(), c.LineMix()
	best, most := c.packing.runners, c.harvestWith(model, mix, c.packing.runners)
	if c.packing.runners == 0 {
		most *= packGain
	}
	for k := 0; k < n; k++ {
		if h := c.harvestWith(model, mix, k); h > most {
			best, most = k, h
		}
	}
	return best
}

// harvestWith returns the rate at which the pool's lines get tokens if k runners are packed, in
// tokens a millisecond.
func (c *Controller) harvestWith(model costmodel.Model, mix costmodel.Mix, k int) float64 {
	n := float64(len(c.roster.Members))
	packed := float64(k)
	free := n - packed
	// c.alone is that of the runners which are free now.
	base := c.fit.perIteration()
	more := (n - float64(c.packing.runners)) / free
	alone := base + max(0, c.alone.iteration.mean()-base)*more
	objective := c.objectiveTime()
	// In bursts, the others carry all that comes.
	peak := (c.alone.shares.quantile(0.01)*objective - base) * more
	seqs := float64(c.engine.MaxSeqs)
	if k > 0 && (peak > packedLoad*(objective-base) || c.kvWanted*more > packedLoad ||
		seqs > 0 && c.slots.wanted*more > packedLoad*seqs || packed > max(1, (1-c.unknown())*n)) {
		return 0
	}
	per := max(model.PerLine(mix), minPerLine)
	lines := max(0, c.target.value()*(objective-alone)) / per
	if c.lines > 0 { // what feedback has found beside it
		lines = min(lines, 1.5*c.lines)
	}
	// And what the prompts of lines may take, which does not bound packed runners.
	byPrompts := math.Inf(1)
	if cost := c.promptCost(); c.limitsPrompts() && cost > 0 {
		byPrompts = c.promptShare / cost * max(mix.Output, 1)
	}
	full := c.fullLines()
	rate := func(lines, alone float64) float64 {
		return lines / (alone + lines*per)
	}
	return packed*rate(full, base) +
		free*min(rate(lines, alone), byPrompts)
}

// packedLoad is the largest part that interactive requests may use of what is left below the
// objective, on the runners that are not packed.
const packedLoad = 0.7

// fullLines returns the number of lines that a packed runner carries.
func (c *Controller) fullLines() float64 {
	full := float64(c.cfg.PerRunner)
	if seqs := float64(c.engine.MaxSeqs); seqs > 0 {
		full = min(full, 0.95*seqs)
	}
	kv := c.lineKV(c.LineMix())
	reserve, first := c.tuning.Reserve, &c.roster.Members[0].State.interactive
	if capacity := first.capacity(c.engine.KVTokens); capacity > 0 && kv.mean > 0 {
		full = min(full, kv.fitting(reserve.KVUsed*capacity, 0, reserve.KVDeviations))
	}
	return full
}
