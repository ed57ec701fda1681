package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// attribution estimates how many late first tokens batch work has caused. Late ones come in bursts
// of users and with long prompts, many of them in a few seconds, with batch work or without it.
// Those that took longer than the objective times the slowdown would have been late anyway, if the
// estimate of the slowdown is right: it knows iterations, but not every queue. So a part of them
// counts nevertheless.
type attribution struct {
	slowdowns peak // of first tokens by batch work, within the last seconds
}

// attributionWindow is for how long a slowdown counts: first tokens that are counted now were
// delayed then.
const attributionWindow = 20 * time.Second

// doubtfulPart is the part of the late first tokens beyond the usual number that counts at least.
const doubtfulPart = 1.0 / 3

func newAttribution() attribution {
	return attribution{slowdowns: peak{window: attributionWindow}}
}

// caused returns how many of the late first tokens, those beyond the usual number, batch work has
// caused, by what a histogram counted between two readings. Without a histogram it is all of them.
func (a *attribution) caused(
	now time.Time, before, counted []flowcontrol.Bucket, objective time.Duration, late float64,
) float64 {
	last := len(counted) - 1
	if last < 0 || len(before) != len(counted) || counted[last].Count < before[last].Count {
		return late
	}
	limit := objective.Seconds()
	most := portable.Rounded(limit * max(1, a.slowdowns.most(now)))
	sum, from, below := 0.0, 0.0, 0.0
	for i, b := range counted {
		n := b.Count - before[i].Count - below
		below += n
		to := b.Upper
		if math.IsInf(to, 1) {
			to = 2 * max(from, 1)
		}
		if part := min(to, most) - max(from, limit); part > 0 && n > 0 {
			sum += portable.Rounded(n * (part / (to - from)))
		}
		from = b.Upper
	}
	return min(late, max(sum, portable.Rounded(doubtfulPart*late)))
}
