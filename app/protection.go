package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/flowcontrol"
)

// logProtection logs what flow control promises interactive users, and by what it keeps that: one
// line for all pools, and one for each pool with settings of its own.
func (a *App) logProtection(ctx context.Context) {
	flow := a.cfg.FlowControl
	a.logPromise(ctx, flow, "all")
	for _, model := range slices.Sorted(maps.Keys(flow.Pools)) {
		a.logPromise(ctx, flow.Pools[model], model)
	}
}

func (a *App) logPromise(ctx context.Context, flow flowcontrol.Config, pool string) {
	log := a.log.With("pool", pool, "policy", flow.Policy)
	switch {
	case !flow.Shared:
		log.InfoContext(ctx, "batch work has the pool to itself: shared is false")
	case !flowcontrol.NeedsOf(flow.Policy).Protects:
		log.WarnContext(ctx, "interactive users are not protected: the policy keeps to no latency")
	default:
		log.InfoContext(ctx, "interactive users are protected", "promise", flow.SLO.String(),
			"signals", strings.Join(a.signals(), ", "))
	}
}

// signals lists what is read of the pools' engines and gateways.
func (a *App) signals() []string {
	var all []string
	read, engines := 0, 0
	for _, u := range a.cfg.Upstreams {
		if u.MetricsURL() != "" {
			read++
		}
		engines += len(u.Engines)
	}
	if every := a.cfg.Telemetry.Every; every > 0 && read > 0 {
		all = append(all, fmt.Sprintf("metrics of %d runners every %v", read, every))
	}
	if engines > 0 {
		all = append(all, fmt.Sprintf("metrics of the engines behind gateways (%d entries of "+
			"upstreams[].engines)", engines))
	}
	if url := a.cfg.Telemetry.Prometheus.URL; url != "" {
		all = append(all, "interactive latencies from Prometheus")
	}
	return append(all, "times of answers")
}
