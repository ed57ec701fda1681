package app

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/telemetry"
)

// adminHandler serves health, metrics, profiles, the configuration and the console.
func (a *App) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state := a.readiness()
		w.Header().Set("Content-Type", "application/json")
		if !state.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(state) // a client that has gone reads no error
	})
	mux.HandleFunc("GET /admin/config", a.serveConfig)
	metrics := a.options.Registry
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics,
		promhttp.HandlerOpts{Registry: metrics}))
	a.console = console.New(console.Deps{
		Version: a.options.Version, Node: a.cfg.Node, Decisions: a.dispatcher.Decisions(),
		Flow: a.flow, Degraded: a.degraded, Failures: a.dispatcher.Failures,
		Requests: a.dispatcher.Pools,
		Waiting:  func() []string { return a.readiness().Waiting },
		Problems: a.problems,
		StandsBy: a.dispatcher.StandsBy, Peers: a.consolePeers, Batches: a.dispatcher.Batches,
		Summaries: a.api.Summaries, Search: a.api.Search,
		Details: a.api.Details, EndedLines: a.api.EndedLines,
		API: a.consoleAPI(), NeedsKey: a.api.NeedsKey,
		Open:    func() bool { return !httpserver.IsLoopback(a.apiAddress()) },
		History: a.store.Records.PoolHours, Usage: a.store.Records.Usage,
		Forget:   a.dispatcher.Forget,
		Scaling:  a.scaling.driver.Snapshot,
		Registry: a.feed.now, RegistrySources: a.feed.sourcesNow, Pools: a.poolsNow,
		Now:    time.Now,
		Logger: a.log.With("component", "console"),
	})
	a.console.Register(mux)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// consoleAPI returns the API for the console; nil: another process serves it.
func (a *App) consoleAPI() http.Handler {
	if !a.servesAPI() {
		return nil
	}
	return a.api.Handler()
}

// flow returns the configuration that is applied now of the pool of this name that serves these
// models.
func (a *App) flow(name string, models []string) flowcontrol.Config {
	running := *a.running.Load()
	cfg, _, _ := withElsewhere(running,
		append(targetsOf(running, a.dispatcher.Targets()), fallbacksOf(running)...))
	return cfg.Snapshot().Flow(name, models)
}

// poolsNow returns the pools that are in force now.
func (a *App) poolsNow() *registry.Snapshot { return a.scaling.pools.Load() }

// writesStatuses reports whether this process writes the statuses of objects of the registry: of
// several, the one that leads scaling does.
func (a *App) writesStatuses() bool {
	return a.dispatches() && !a.dispatcher.StandsByForScaling()
}

// degraded returns the sources of readings that give none.
func (a *App) degraded() []telemetry.Degradation {
	if reader := a.telemetry.Load(); reader != nil {
		return reader.Degraded()
	}
	return nil
}
