package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/portable"
)

// fewest is what the runner with the fewest lines carries, and the one whose lines hold the least
// context.
type fewest struct{ lines, context float64 }

func (c *Controller) fewest(now time.Time) fewest {
	f := fewest{lines: math.Inf(1), context: math.Inf(1)}
	for _, m := range c.roster.Members {
		if r := m.State; r.comparable(m.Held(now)) {
			f.lines = min(f.lines, float64(r.own.lines))
			f.context = min(f.context, r.own.context)
		}
	}
	return f
}

// anyDifference is by how many lines' context runners may differ in any case, and by half as many
// lines: a few lines are never alike.
const anyDifference = 8

// bound returns how many lines a runner may carry for the pool's runners to stay alike. A router
// that considers load counts what lines hold, and old lines hold more than young ones: while a
// runner holds much more than another, no more lines start there.
func (f fewest) bound(r *runner, mix costmodel.Mix, cfg Pace) float64 {
	most := portable.Rounded(cfg.MaxLineRatio*f.lines) + anyDifference/2
	if r.own.context > portable.Rounded(cfg.MaxContextRatio*f.context)+portable.Rounded(
		anyDifference*mix.Context) {
		most = min(most, float64(r.own.lines))
	}
	return most
}
