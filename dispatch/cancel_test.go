package dispatch_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// held is an upstream that holds its answers back until it is opened.
func held(t *testing.T) (up *upstream, open func(), ended *events) {
	gate := make(chan struct{})
	ended = &events{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			io.WriteString(w, okBody)
		case <-r.Context().Done():
			ended.add()
		}
	}, "m"), func() { close(gate) }, ended
}

func cancelling(finish bool) func(*store.Batch) {
	return func(b *store.Batch) {
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, time.Now()
		b.FinishInFlight = finish
	}
}

func patient(cfg *dispatch.Config, _ *dispatch.Deps) { cfg.CancelGrace = time.Hour }

func TestCancelEndsLinesInFlight(t *testing.T) {
	up, _, ended := held(t)
	w := newWorld(t)
	w.dispatcher("a", patient, up.URL)
	id := w.submit(chatLines(50, "m"), nil)
	w.await(id, "in flight", func(store.Batch) bool { return up.requests() == 16 })
	w.modify(id, cancelling(false))
	b := w.awaitEnd(id)
	ended.await(t, 16) // the upstream noticed
	output, errs := w.results(id)
	if b.State != store.Cancelled || len(output) != 0 || len(errs) != 50 || b.Attempts != 16 {
		t.Errorf("got %s, %d and %d lines after %d attempts", b.State, len(output), len(errs),
			b.Attempts)
	}
	for _, e := range errs {
		if e.Error == nil || e.Error.Code != "batch_cancelled" {
			t.Errorf("%s: got %+v", e.CustomID, e.Error)
		}
	}
}

func TestCancelMayLetLinesInFlightFinish(t *testing.T) {
	up, open, ended := held(t)
	w := newWorld(t)
	d, _ := w.dispatcher("a", patient, up.URL)
	id := w.submit(chatLines(50, "m"), nil)
	w.await(id, "in flight", func(store.Batch) bool { return up.requests() == 16 })
	w.modify(id, cancelling(true))
	// The planner starts no more of its lines. Before that, an answer would let another one start.
	until(t, "the batch is stopped", func() bool { return len(survey(t, d).Jobs) == 0 })
	w.await(id, "shown with 16 in flight and none that start", func(store.Batch) bool {
		p := w.progress(id)
		return p.LinesPerSecond == 0 && p.InFlight == 16
	})
	w.touch(id) // reconciled again, it still waits
	open()
	b := w.awaitEnd(id)
	output, errs := w.results(id)
	if b.State != store.Cancelled || len(output) != 16 || len(errs) != 34 || ended.count() > 0 {
		t.Errorf("got %s, %d and %d lines, %d requests ended", b.State, len(output), len(errs),
			ended.count())
	}
}

// A second request ends the lines that the first let finish.
func TestCancelAgainEndsLinesInFlight(t *testing.T) {
	up, _, ended := held(t)
	w := newWorld(t)
	w.dispatcher("a", patient, up.URL)
	id := w.submit(chatLines(50, "m"), nil)
	w.await(id, "in flight", func(store.Batch) bool { return up.requests() == 16 })
	w.modify(id, cancelling(true))
	w.modify(id, cancelling(false))
	if b := w.awaitEnd(id); b.State != store.Cancelled {
		t.Errorf("got %s", b.State)
	}
	ended.await(t, 16)
	w.results(id)
}
