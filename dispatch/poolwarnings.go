package dispatch

import (
	"log/slog"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// poolWarnings are the warnings of flow control that have been logged and still hold, by pool and
// code.
type poolWarnings map[poolWarning]bool

type poolWarning struct{ pool, code string }

// log logs the warnings that are new, and those that have ended.
func (w *poolWarnings) log(log *slog.Logger, pools []plan.PoolStatus) {
	hold := poolWarnings{}
	for _, p := range pools {
		label := p.ID
		for _, warning := range p.Warnings {
			key := poolWarning{label, warning.Code}
			if !(*w)[key] && !hold[key] {
				log.Warn("flow control warns", "pool", label, "warning", warning.Code, "text",
					warning.Text)
			}
			hold[key] = true
		}
	}
	for key := range *w {
		if !hold[key] {
			log.Info("warning of flow control has ended", "pool", key.pool, "warning", key.code)
		}
	}
	*w = hold
}
