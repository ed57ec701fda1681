package app

import (
	"context"
	"time"
)

const (
	// pingTimeout bounds how long the store may take to answer a readiness check.
	pingTimeout = 2 * time.Second
	// readyInterval is the time between two checks for Options.Ready.
	readyInterval = 20 * time.Millisecond
)

// readiness is the answer of /readyz: whether the daemon takes requests, and why not.
type readiness struct {
	Ready     bool     `json:"ready"`
	Waiting   []string `json:"waiting"`
	FreeBytes *uint64  `json:"free_bytes"` // null: unknown
}

// readiness checks the parts. A full disk is reported and does not count, because results must stay
// reachable and files deletable.
func (a *App) readiness(ctx context.Context) readiness {
	r := readiness{Waiting: []string{}}
	if a.draining.Load() {
		r.Waiting = append(r.Waiting, "shutting down")
	}
	if !a.dispatcher.Ready() {
		r.Waiting = append(r.Waiting, "the dispatcher is taking over the batches in the store")
	}
	if err := a.store.Available(); err != nil {
		r.Waiting = append(r.Waiting, err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := a.store.Records.Ping(ctx); err != nil {
		r.Waiting = append(r.Waiting, "the store: "+err.Error())
	}
	if free, err := a.store.FreeBytes(); err == nil {
		r.FreeBytes = &free
	}
	r.Ready = len(r.Waiting) == 0
	return r
}

// notifyReady calls Options.Ready once the daemon is ready, unless ctx ends before.
func (a *App) notifyReady(ctx context.Context) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for !a.readiness(ctx).Ready {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	a.options.Ready()
	return nil
}
