package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// A dispatcher that does not reach the files any more leaves its batches to another one at once,
// and leads again when it does.
func TestADispatcherWithoutTheFilesLeadsNothing(t *testing.T) {
	w := newWorld(t)
	var gone atomic.Bool
	quick := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.LeaseTTL, cfg.ChunkLines = time.Minute, 10
	}
	steps := make(stepwise)
	up := serve(t, steps.answer, "m")
	a, _ := w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.LeaseTTL = 4 * time.Second
		deps.Misplaced = func(context.Context) error {
			if gone.Load() {
				return fmt.Errorf("%w: the mount is gone", store.ErrUnavailable)
			}
			return nil
		}
	}, up.URL)
	id := w.submit(chatLines(40, "m"), nil)
	steps.permit(5)
	w.await(id, "begun", func(store.Batch) bool { return w.progress(id).Completed == 5 })
	gone.Store(true)
	until(t, "a leads nothing", func() bool {
		_, leads := a.Epoch()
		return !a.Ready() && !leads
	})
	close(steps)
	owners, err := w.meta.KnownOwners(t.Context())
	if err != nil || len(owners) != 1 || owners[0].LeaseLeft > 0 {
		t.Errorf("owners %+v, %v: want a lease that has ended", owners, err)
	}
	w.dispatcher("b", quick, serve(t, nil, "m").URL)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 40 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	gone.Store(false)
	until(t, "a works again", a.Ready)
}

// Blobs that are missing because the medium is another one do not fail a batch.
func TestAnInputThatIsOutOfReachFailsNoBatch(t *testing.T) {
	w := newWorld(t)
	away := &awayBlobs{Blobs: w.disk.Blobs()}
	away.away.Store(true)
	w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) { deps.Blobs = away },
		serve(t, nil, "m").URL)
	id := w.submit(chatLines(3, "m"), nil)
	until(t, "the input was asked for", func() bool { return away.asked.Load() > 1 })
	if b := w.batch(id); b.State != store.Validating {
		t.Errorf("got %s %+v, want a batch that waits", b.State, b.Errors)
	}
	away.away.Store(false)
	if b := w.awaitEnd(id); b.State != store.Completed {
		t.Errorf("got %s, %+v", b.State, b.Errors)
	}
}

// awayBlobs are blobs whose medium is another one for a while.
type awayBlobs struct {
	dispatch.Blobs
	away  atomic.Bool
	asked atomic.Int32
}

func (a *awayBlobs) Open(ctx context.Context, key string) (store.Blob, error) {
	a.asked.Add(1)
	if a.away.Load() {
		return nil, errors.Join(store.ErrUnavailable, errors.New("the marker is missing"))
	}
	return a.Blobs.Open(ctx, key)
}
