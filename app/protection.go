package app

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
)

// logProtection logs what flow control promises interactive users, and by what it keeps that: one
// line for all pools, and one for each pool with settings of its own.
func (a *App) logProtection(ctx context.Context, cfg config.Config) {
	read, err := signals(cfg)
	if err != nil { // New and prepare have refused it
		a.log.ErrorContext(ctx, "can't list what is read of the runners", "error", err)
	}
	flow := cfg.Snapshot().FlowControl()
	a.logPromise(ctx, flow, "all", read)
	for _, model := range slices.Sorted(maps.Keys(flow.Pools)) {
		a.logPromise(ctx, flow.Pools[model], model, read)
	}
}

// logPromise logs the promise of a pool; read is what is read of runners and gateways.
func (a *App) logPromise(
	ctx context.Context, flow flowcontrol.Config, pool string, read []string,
) {
	log := a.log.With("pool", pool, "policy", flow.Policy)
	switch {
	case !flow.Shared:
		log.InfoContext(ctx, "batch work has the pool to itself: shared is false")
	case !flowcontrol.NeedsOf(flow.Policy).Protects:
		log.WarnContext(ctx, "interactive users are not protected: the policy keeps to no latency")
	default:
		log.InfoContext(ctx, "interactive users are protected", "promise", flow.SLO.String(),
			"where_nothing_shows_users", flow.SLO.ByAnswers(),
			"signals", strings.Join(slices.Concat(read, ownSignals(flow)), ", "))
	}
	if shadow := flow.Shadow.Policy; shadow != "" {
		log.InfoContext(ctx, "a shadow policy observes the pool and changes nothing", "shadow",
			shadow)
	}
}
