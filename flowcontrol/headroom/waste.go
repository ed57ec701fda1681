package headroom

import (
	"time"
)

// waste counts tokens over about an hour.
type waste struct {
	answered float64
	wasted   float64 // by evictions
}

func (w *waste) fade(dt time.Duration) {
	fade := weight(dt, time.Hour)
	w.answered -= fade * w.answered
	w.wasted -= fade * w.wasted
}

// minAnswered is the least number of tokens that counts as answered. The first burst may come
// when few lines have ended.
const minAnswered = 1e5

// emergency is the factor by which evictions may waste more once the budget of late requests is
// spent, or where users crowd. What is wasted before must not leave a burst without remedy.
const emergency = 3

// allows reports whether evictions may waste so many tokens more, if they may waste a share.
func (w *waste) allows(tokens, share float64) bool {
	return w.wasted+tokens < share*max(w.answered, minAnswered)
}

// share returns the wasted tokens as a share of the answered ones.
func (w *waste) share() float64 { return w.wasted / max(w.answered, 1) }

// mayEvict reports whether a line of the runner may be evicted.
func (c *Controller) mayEvict(r *runner) bool {
	return c.mayWaste(r, c.budget.left() == 0)
}

// mayWaste reports whether evictions may waste a line of the runner, in an emergency or not.
func (c *Controller) mayWaste(r *runner, inEmergency bool) bool {
	share := c.tuning.Brake.MaxWaste
	if inEmergency {
		share *= emergency
	}
	return c.waste.allows(r.own.context/max(float64(r.own.lines), 1), share)
}
