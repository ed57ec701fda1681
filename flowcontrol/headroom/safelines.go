package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// safeLines returns the greatest number of lines of a mix for which the runner has enough sequences
// and KV cache. reason says which of them limits it. Neither feedback nor deadlines may exceed it.
func (c *Controller) safeLines(
	now time.Time, r *runner, mix costmodel.Mix,
) (lines int, reason flowcontrol.Reason) {
	lines, reason = int(c.perRunner(r)), flowcontrol.ReasonRunnerLimit
	if r.opaque() {
		return lines, reason
	}
	for _, by := range []struct {
		lines  float64
		reason flowcontrol.Reason
	}{{c.linesBySlots(now, r, mix), ReasonSlots}, {c.linesByKV(now, r, mix), ReasonKV}} {
		if by.lines < float64(lines) {
			lines, reason = max(0, int(by.lines)), by.reason
		}
	}
	return lines, reason
}

// lightShare is the part of the KV cache that lines may use although a burst may want it, if it is
// free: without it, a single large burst would keep all lines away for half an hour.
const lightShare = 0.1

const (
	// unseenShare is the part of an engine's sequences and KV cache that lines may use if nothing
	// shows the use of interactive requests.
	unseenShare = 0.25
	// countedShare is that part if a gateway counts them, so that late ones would be seen.
	countedShare = 0.5
)

// unseen reports whether no metrics show the interactive requests on a runner, and which part of it
// lines may use then.
func (c *Controller) unseen(r *runner) (share float64, unseen bool) {
	switch {
	case !c.shared || !r.interactive.seenAt.IsZero():
		return 1, false
	case c.outcomes.at.IsZero():
		return unseenShare, true
	}
	return countedShare, true
}

// growth returns the growth that the interactive load may have had since the last metrics, in
// standard deviations. Metrics that are stale show no less than any older ones.
func (c *Controller) growth(now time.Time, r *runner) float64 {
	if r.interactive.seenAt.IsZero() {
		return 0
	}
	age := min(now.Sub(r.interactive.seenAt), c.tuning.Staleness.StaleAfter)
	return float64(age) / float64(c.tuning.Staleness.AgingAfter)
}

// linesBySlots returns the number of lines that leave enough of the engine's sequences free.
func (c *Controller) linesBySlots(now time.Time, r *runner, mix costmodel.Mix) float64 {
	seqs := float64(c.engine.MaxSeqs)
	share, unseen := c.unseen(r)
	switch {
	case seqs <= 0:
		return math.Inf(1)
	case unseen:
		return min(share*seqs, max(0, seqs-c.countedUsers()))
	case !c.shared:
		return seqs
	}
	in := &r.interactive
	needed := in.demand
	if r.packed == 0 {
		needed = max(c.slots.wanted, needed, burst*c.unknown()*seqs)
	}
	needed += c.growth(now, r) * math.Sqrt(in.running.variance)
	// Requests that wait for a moment are still in time.
	return seqs - c.keptFree(in.demand, needed/(1+c.slots.patience), mix)
}

// linesByKV returns the number of lines that leave enough of the KV cache free.
func (c *Controller) linesByKV(now time.Time, r *runner, mix costmodel.Mix) float64 {
	in, kv, reserve := &r.interactive, c.lineKV(mix), c.tuning.Reserve
	shared := 0.0
	if c.seenOften(now, r) { // else nobody would notice that lines of several jobs share less
		kv, shared = c.lineKVApart(mix), c.sizes.shared()
	}
	capacity := in.capacity(c.engine.KVTokens)
	if capacity <= 0 || kv.mean <= 0 {
		return math.Inf(1)
	}
	usable := max(0, reserve.KVUsed*capacity-shared)
	present, held := in.context.above(1), 0.0
	if r.packed == 0 {
		held = max(c.kvWanted, burst*c.unknown()) * capacity /
			(1 + c.slots.patience)
	}
	held += c.growth(now, r) * math.Sqrt(in.context.variance)
	share, unseen := c.unseen(r)
	switch {
	case !c.shared: // what lines hold is an estimate, and the rest of what is held is theirs
		present, held = 0, 0
	case unseen:
		held = c.countedUsers() * c.first.prompts.mean()
	}
	free := min(usable-c.keptFree(present, held, mix), share*usable)
	free = max(free, min(usable-present, lightShare*capacity))
	lines := kv.fitting(free, 0, reserve.KVDeviations)
	if c.noticesUsers(now, r) {
		wanted := wantedPart * max(0, usable-present-free)
		apart := kv.fitting(usable-present, wanted, reserve.KVDeviations)
		lines = max(lines, min(apart, (1-estimateError)*free/kv.mean))
	}
	if scout := c.sizes.prompt + max(c.sizes.output, assumedOutput); lines < 1 &&
		scout < usable-present && c.mayScout(now, r) {
		return 1
	}
	return lines
}

// mayScout reports whether a runner may carry its only line although it might not fit. Without such
// lines the sizes of lines would stay unknown, and what is assumed of them could keep the pool
// empty for ever. One of the pool does so, or those of a quarter of its runners where users are
// noticed.
func (c *Controller) mayScout(now time.Time, r *runner) bool {
	others, most := 0, 1
	if c.noticesUsers(now, r) {
		most = max(most, len(c.roster.Members)/4)
	}
	for _, m := range c.roster.Members {
		if m.State != r && m.State.own.lines > 0 {
			others++
		}
	}
	return others < most && r.own.lines <= 1
}

// noticesUsers reports whether users who wait for what lines hold of a runner are noticed soon, by
// its metrics or because a gateway counts late requests. Lines are evicted then, or get fewer.
func (c *Controller) noticesUsers(now time.Time, r *runner) bool {
	return c.seenOften(now, r) ||
		c.source.of == flowcontrol.Gateway && often(now, c.outcomes.at, c.outcomes.every)
}

// seenOften reports whether the runner's metrics are read often enough for that.
func (c *Controller) seenOften(now time.Time, r *runner) bool {
	return often(now, r.interactive.seenAt, r.interactive.every)
}

func often(now, at time.Time, every time.Duration) bool {
	return every > 0 && every <= soon && now.Sub(at) <= 2*soon
}

// soon is the most time between two readings: evictions begin with the second one that shows users
// who wait. wantedPart is the part of what users wanted at once, beyond what they hold, that is
// kept for them where they are noticed. What lines and users hold is an estimate, so estimateError
// of what may be free is kept free whatever the deviations.
const (
	soon          = 15 * time.Second
	wantedPart    = 0.7
	estimateError = 0.1
)
