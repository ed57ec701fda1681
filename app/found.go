package app

import "context"

// foundRunners is what is known of the runners that were found in Kubernetes last.
type foundRunners struct {
	pending bool   // they are not in use yet
	refused string // why the last were not; empty: they were not tried, or are in use
}

// come takes note of runners that have been found. Why the last ones were refused stays, so that a
// reason that is the same is not reported again.
func (f *foundRunners) come() { f.pending = true }

// applyFound applies the runners that were found in Kubernetes. If they can't be used, it tries
// again at each call, as nothing else would until a Pod changes.
func (a *App) applyFound(ctx context.Context) {
	if !a.found.pending {
		return
	}
	pooled, follow := a.withPools(*a.running.Load())
	effective := a.withFound(pooled)
	apply, err := a.prepare(a.effective, effective)
	if err != nil {
		if a.found.refused != err.Error() {
			a.found.refused = err.Error()
			a.log.ErrorContext(ctx, "the runners that were found in Kubernetes, or that external "+
				"templates name, can't be used; those that were known stay in use", "error", err)
		}
		return
	}
	a.found = foundRunners{}
	apply(ctx)
	follow()
	a.effective = effective
	a.scaling.driver.Poke()
}
