package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/portable"
)

// leastLoad holds the smallest number of lines, and the smallest number of KV tokens of lines, on
// any of the pool's comparable runners. Both are infinite if no runner is comparable.
type leastLoad struct{ lines, context float64 }

func (c *Controller) leastLoad(now time.Time) leastLoad {
	least := leastLoad{lines: math.Inf(1), context: math.Inf(1)}
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 && r.comparable(m.Held(now)) {
			least.lines = min(least.lines, float64(r.own.lines))
			least.context = min(least.context, r.own.context)
		}
	}
	return least
}

// allowedDifference is the difference between runners that is always allowed, in lines' worth of
// context. Half of it is allowed as a number of lines. The sizes of a few lines vary too much for
// equal load.
const allowedDifference = 8

// bound returns how many lines a runner may carry so that the load of the pool's runners stays
// similar. A router that balances by load considers the KV tokens of lines, and a line that has run
// for longer holds more of them. While a runner's lines hold much more than those of another, no
// more lines start on it.
func (least leastLoad) bound(r *runner, mix costmodel.Mix, cfg Pace) float64 {
	most := portable.Rounded(cfg.MaxLineRatio*least.lines) + allowedDifference/2
	if r.own.context > portable.Rounded(cfg.MaxContextRatio*least.context)+portable.Rounded(
		allowedDifference*mix.Context) {
		most = min(most, float64(r.own.lines))
	}
	return most
}
