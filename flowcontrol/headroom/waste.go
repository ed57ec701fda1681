package headroom

import "time"

// waste counts tokens over about an hour.
type waste struct {
	answered float64
	wasted   float64 // by evictions
}

func (w *waste) fade(dt time.Duration) {
	fade := weight(dt, time.Hour)
	w.answered -= float64(fade * w.answered)
	w.wasted -= float64(fade * w.wasted)
}

// allows reports whether evictions may waste more.
func (w *waste) allows(cfg Brake) bool {
	return w.wasted < float64(cfg.MaxWaste*w.answered)
}

// share returns the wasted tokens as a share of the answered ones.
func (w *waste) share() float64 { return w.wasted / max(w.answered, 1) }
