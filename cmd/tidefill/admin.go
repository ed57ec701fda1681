package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminHandler serves those who run the daemon: probes, metrics and profiles.
func (d *daemon) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		state := d.readiness(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if !state.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		json.NewEncoder(w).Encode(state)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.registry,
		promhttp.HandlerOpts{Registry: d.registry}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// readiness is whether the daemon should be sent requests, and why not.
type readiness struct {
	Ready     bool     `json:"ready"`
	Waiting   []string `json:"waiting"`
	FreeBytes *uint64  `json:"free_bytes"` // null: unknown
}

// pingTimeout is how long the store may take to answer a probe.
const pingTimeout = 2 * time.Second

// readiness asks the parts. A full disk is told and does not count: results must stay within reach,
// and files deletable.
func (d *daemon) readiness(ctx context.Context) readiness {
	r := readiness{Waiting: []string{}}
	if d.draining.Load() {
		r.Waiting = append(r.Waiting, "shutting down")
	}
	if !d.dispatcher.Ready() {
		r.Waiting = append(r.Waiting, "the dispatcher takes over what the store holds")
	}
	if err := d.files.Present(); err != nil {
		r.Waiting = append(r.Waiting, err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := d.metadata.Ping(ctx); err != nil {
		r.Waiting = append(r.Waiting, "the store: "+err.Error())
	}
	if free, err := d.files.FreeBytes(); err == nil {
		r.FreeBytes = &free
	}
	r.Ready = len(r.Waiting) == 0
	return r
}
