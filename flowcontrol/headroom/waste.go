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

// allows reports whether evictions may waste more.
func (w *waste) allows(cfg Brake) bool {
	return w.wasted < cfg.MaxWaste*w.answered
}

// share returns the wasted tokens as a share of the answered ones.
func (w *waste) share() float64 { return w.wasted / max(w.answered, 1) }
