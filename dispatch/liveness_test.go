package dispatch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

var errBusy = errors.New("database is locked")

// faulty is a store some of whose methods fail on cue.
type faulty struct {
	dispatch.Metadata
	finish, release, claim func() error // nil or returning nil: works
	claimAfter             func() error // like claim, but the claim has been made
}

func (f *faulty) FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error {
	if f.finish != nil {
		if err := f.finish(); err != nil {
			return err
		}
	}
	return f.Metadata.FinishChunks(ctx, o, chunks...)
}

func (f *faulty) ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error {
	if f.release != nil {
		if err := f.release(); err != nil {
			return err
		}
	}
	return f.Metadata.ReleaseChunk(ctx, o, c)
}

func (f *faulty) ClaimChunks(
	ctx context.Context, o store.Owner, batch, model string, n int, inHand []int,
) ([]store.Chunk, error) {
	if f.claim != nil {
		if err := f.claim(); err != nil {
			return nil, err
		}
	}
	claimed, err := f.Metadata.ClaimChunks(ctx, o, batch, model, n, inHand)
	if err == nil && f.claimAfter != nil {
		if err := f.claimAfter(); err != nil {
			return nil, err
		}
	}
	return claimed, err
}

// times fails the first n calls.
func times(n int64) func() error {
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) <= n {
			return errBusy
		}
		return nil
	}
}

// on lets a dispatcher work on the store as f has it, with small chunks.
func (w *world) on(f *faulty) func(*dispatch.Config, *dispatch.Deps) {
	return func(cfg *dispatch.Config, deps *dispatch.Deps) {
		f.Metadata = w.meta
		deps.Metadata = f
		cfg.ChunkLines, cfg.Drain = 50, 0
	}
}

// A crash, or a stop, may come between a chunk's last result and the mark that it is done. Whoever
// claims the chunk next finds nothing to send, and the store may be busy just then.
func TestCompleteChunkIsFinishedThoughTheStoreIsBusy(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	_, stop := w.dispatcher("a", w.on(&faulty{finish: func() error { return errBusy }}), up.URL)
	id := w.submit(chatLines(100, "m"), nil)
	w.await(id, "answered", func(store.Batch) bool { return w.progress(id).Completed == 100 })
	stop()
	if b := w.batch(id); b.State != store.InProgress {
		t.Fatalf("the batch is %s before its chunks are done", b.State)
	}
	w.dispatcher("a", w.on(&faulty{finish: times(2)}), up.URL)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 100 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if n := up.requests(); n != 100 {
		t.Errorf("%d requests for 100 lines", n)
	}
}

func TestClaimsWithLostAnswersAreRepeated(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	w.dispatcher("a", w.on(&faulty{claimAfter: times(3)}), up.URL)
	id := w.submit(chatLines(100, "m"), nil)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 100 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
}

func TestCancelEndsThoughNoChunkCanBePutBack(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "m")
	w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		w.on(&faulty{release: times(1)})(cfg, deps)
		cfg.CancelGrace = 10 * time.Millisecond
	}, up.URL)
	id := w.submit(chatLines(100, "m"), nil)
	w.await(id, "in flight", func(store.Batch) bool { return w.progress(id).InFlight > 0 })
	w.modify(id, func(b *store.Batch) {
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, time.Now()
	})
	if b := w.awaitEnd(id); b.State != store.Cancelled {
		t.Errorf("got %s", b.State)
	}
}

// The runner is gone for good, but all lines have their answers: nothing of the batch needs a
// runner any more.
func TestBatchEndsWithoutItsRunnerWhenAllIsDone(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		io.WriteString(rw, okBody)
	}, "m")
	gate := &gated{Metadata: w.meta}
	_, stop := w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		deps.Metadata, cfg.Drain = gate, 0
	}, up.URL)
	id := w.submit(chatLines(20, "m"), nil)
	w.await(id, "done but for its end", func(store.Batch) bool {
		n, err := w.meta.CountChunks(t.Context(), store.Owner{}, id, nil)
		return err == nil && n.Done > 0 && n.Free+n.Claimed == 0
	})
	stop()
	up.Close()
	w.dispatcher("a", nil, up.URL)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 20 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
}

// gated is a store in which no batch leaves in_progress.
type gated struct{ dispatch.Metadata }

func (g *gated) UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error) {
	if b.State == store.Finalizing {
		return store.Batch{}, errBusy
	}
	return g.Metadata.UpdateBatch(ctx, b)
}

func TestLinesThatAreAlwaysShedFail(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: pauses that double")
	}
	w := newWorld(t)
	up := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `say line-7"`) || strings.Contains(string(body),
			`say line-30"`) {
			http.Error(rw, `{"error":{"message":"not you"}}`, http.StatusTooManyRequests)
			return
		}
		io.WriteString(rw, okBody)
	}, "m")
	w.dispatcher("a", func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.Retry.Max = 20 * time.Millisecond
	}, up.URL)
	id := w.submit(chatLines(60, "m"), func(b *store.Batch) { b.Deadline = time.Time{} })
	b := w.awaitEnd(id)
	if b.State != store.Completed || b.Counts.Completed != 58 || b.Counts.Failed != 2 {
		t.Fatalf("got %s, %+v", b.State, b.Counts)
	}
	_, errs := w.results(id)
	for _, r := range errs {
		if r.Error == nil || r.Error.Code != "shed_too_often" || !strings.Contains(r.Error.Message,
			"more often than is tried") || !strings.Contains(r.Error.Message, "not you") {
			t.Errorf("%s: %+v", r.CustomID, r.Error)
		}
	}
}

func TestOutageOfShedsCountsNoAttempts(t *testing.T) {
	w := newWorld(t)
	var up atomic.Bool
	var shed atomic.Int64
	server := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			shed.Add(1)
			http.Error(rw, "{}", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(rw, okBody)
	}, "m")
	w.dispatcher("a", func(cfg *dispatch.Config, _ *dispatch.Deps) {
		// A line in flight when the outage ends may be shed after others were answered, once.
		cfg.Retry.Max, cfg.Retry.Sheds = 10*time.Millisecond, 2
	}, server.URL)
	id := w.submit(chatLines(40, "m"), nil)
	w.await(id, "shed often", func(store.Batch) bool { return shed.Load() > 160 })
	up.Store(true)
	if b := w.awaitEnd(id); b.Counts.Completed != 40 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
}
