package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
)

// logProtection logs what flow control promises interactive users, and by what it keeps that: one
// line for all pools, and one for each pool with settings of its own.
func (a *App) logProtection(ctx context.Context, cfg config.Config) {
	flow, signals := cfg.FlowControl, strings.Join(signals(cfg), ", ")
	a.logPromise(ctx, flow, "all", signals)
	for _, model := range slices.Sorted(maps.Keys(flow.Pools)) {
		a.logPromise(ctx, flow.Pools[model], model, signals)
	}
}

func (a *App) logPromise(ctx context.Context, flow flowcontrol.Config, pool, signals string) {
	log := a.log.With("pool", pool, "policy", flow.Policy)
	switch {
	case !flow.Shared:
		log.InfoContext(ctx, "batch work has the pool to itself: shared is false")
	case !flowcontrol.NeedsOf(flow.Policy).Protects:
		log.WarnContext(ctx, "interactive users are not protected: the policy keeps to no latency")
	default:
		log.InfoContext(ctx, "interactive users are protected", "promise", flow.SLO.String(),
			"signals", signals)
	}
	if shadow := flow.Shadow.Policy; shadow != "" {
		log.InfoContext(ctx, "a shadow policy observes the pool and changes nothing", "shadow",
			shadow)
	}
}

// signals lists what is read of the pools' engines and gateways.
func signals(cfg config.Config) []string {
	var all []string
	read, engines := 0, 0
	for _, u := range cfg.Upstreams {
		if u.MetricsURL() != "" {
			read++
		}
		engines += len(u.Engines)
	}
	if every := cfg.Telemetry.Every; every > 0 && read > 0 {
		all = append(all, fmt.Sprintf("metrics of %d runners every %v", read, every))
	}
	if engines > 0 {
		all = append(all, fmt.Sprintf("metrics of the engines behind gateways (%d entries of "+
			"upstreams[].engines)", engines))
	}
	if url := cfg.Telemetry.Prometheus.URL; url != "" {
		all = append(all, "interactive latencies from Prometheus")
	}
	return append(all, "times of answers")
}
