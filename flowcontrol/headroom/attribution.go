package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// attribution estimates the number of late first tokens that batch work has caused. Late ones come
// in bursts of users and with long prompts, many of them in a few seconds, with batch work or
// without it. Lines make a first token take a multiple of its time. A line's prompt that is
// computed before delays it by the time of that prompt. First tokens that took longer than the
// objective and both delays would have been late anyway, if the estimates are right. The estimates
// know iterations, but not every queue, so a part of these first tokens counts nevertheless. While
// lines run where the KV cache or the sequences may be full, all of them count. A request that
// waits for those waits until another one ends.
type attribution struct {
	slowdowns peak      // of first tokens by lines, within the last seconds
	waits     peak      // of first tokens for prompts of lines, in seconds
	full      time.Time // when a runner with lines was last full
}

// attributionWindow is the time for which a delay counts: first tokens that are counted now were
// delayed then.
const attributionWindow = 20 * time.Second

// doubtfulPart is the part of the late first tokens beyond the usual number that counts at least.
const doubtfulPart = 0.35

func newAttribution() attribution {
	return attribution{slowdowns: peak{window: attributionWindow},
		waits: peak{window: attributionWindow}}
}

// see records the factor by which lines slow first tokens down, and the time that first tokens wait
// for prompts of lines, in seconds.
func (a *attribution) see(now time.Time, slowdown, wait float64) {
	a.slowdowns.add(now, slowdown)
	a.waits.add(now, wait)
}

// seeFull records that a runner with lines may have its KV cache or its sequences full.
func (a *attribution) seeFull(now time.Time) { a.full = now }

// mayBeFull reports whether a runner's KV cache or its sequences are full, or its lines hold a
// tenth of either and no metrics show the rest.
func (c *Controller) mayBeFull(now time.Time, r *runner) bool {
	if now.Before(r.kvPressure.until) || now.Before(r.slotPressure.until) {
		return true
	}
	if c.recent(now, r.interactive.seenAt) {
		return false
	}
	seqs, capacity := float64(c.engine.MaxSeqs), r.interactive.capacity(c.engine.KVTokens)
	return float64(r.own.lines) > tenth*seqs ||
		r.own.context > tenth*capacity
}

// caused returns the number of late first tokens that batch work has caused. late is the number
// beyond the usual one, and before and counted are a histogram at two readings. Without a
// histogram, batch work has caused all of them.
func (a *attribution) caused(
	now time.Time, before, counted []flowcontrol.Bucket, objective time.Duration, late float64,
) float64 {
	if !a.full.IsZero() && now.Sub(a.full) <= attributionWindow {
		return late
	}
	last := len(counted) - 1
	if last < 0 || len(before) != len(counted) || counted[last].Count < before[last].Count {
		return late
	}
	limit := objective.Seconds()
	// Requests of a burst wait for each other, so that a slowdown delays the last ones more than
	// once. Its square is what steady chat showed.
	slowdown := max(1, a.slowdowns.most(now))
	most := limit*(slowdown*slowdown) + a.waits.most(now)
	sum, from, below := 0.0, 0.0, 0.0
	for i, b := range counted {
		n := b.Count - before[i].Count - below
		below += n
		to := b.Upper
		if math.IsInf(to, 1) {
			to = 2 * max(from, 1)
		}
		if part := min(to, most) - max(from, limit); part > 0 && n > 0 {
			sum += n * (part / (to - from))
		}
		from = b.Upper
	}
	return min(late, max(sum, doubtfulPart*late))
}
