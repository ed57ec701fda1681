package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// waste counts tokens over about an hour.
type waste struct {
	answered float64
	wasted   float64 // by evictions
}

func (w *waste) fade(dt time.Duration) {
	fade := weight(dt, time.Hour)
	w.answered -= portable.Rounded(fade * w.answered)
	w.wasted -= portable.Rounded(fade * w.wasted)
}

// leastAnswered is how many tokens count as answered before there were as many, because the first
// burst may come when few lines have ended.
const leastAnswered = 1e5

// allows reports whether evictions may waste so many tokens more.
func (w *waste) allows(tokens float64, cfg Brake) bool {
	return w.wasted+tokens < cfg.MaxWaste*max(w.answered, leastAnswered)
}

// share returns the wasted tokens as a share of the answered ones.
func (w *waste) share() float64 { return w.wasted / max(w.answered, 1) }

// mayEvict reports whether a line of the runner may be evicted.
func (c *Controller) mayEvict(r *runner) bool {
	return c.waste.allows(r.own.context/max(float64(r.own.lines), 1), c.tuning.Brake)
}
