package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// frozen is a store that a dispatcher can be cut off from for a while, as if its process were
// suspended.
type frozen struct {
	dispatch.Metadata
	mu   sync.Mutex
	thaw chan struct{} // nil: not frozen
}

func (f *frozen) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.thaw = make(chan struct{})
}

func (f *frozen) wait(ctx context.Context) error {
	f.mu.Lock()
	thaw := f.thaw
	f.mu.Unlock()
	if thaw == nil {
		return nil
	}
	select {
	case <-thaw:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *frozen) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	return f.Metadata.Renew(ctx, o, ttl)
}

func (f *frozen) FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	return f.Metadata.FinishChunks(ctx, o, chunks...)
}

func slowly(pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(pause)
		io.WriteString(w, okBody)
	}
}

func TestLimitsHoldOverAllDispatchers(t *testing.T) {
	for _, dispatchers := range []int{2, 3} {
		t.Run(fmt.Sprint(dispatchers), func(t *testing.T) {
			w := newWorld(t)
			up := serve(t, slowly(2*time.Millisecond), "m", "n")
			for i := range dispatchers {
				w.dispatcher(fmt.Sprint("node-", i), func(
					cfg *dispatch.Config, deps *dispatch.Deps) {
					cfg.ChunkLines, cfg.Plan.LookAhead = 10, 10
					deps.Registry = fixedLines(8)
				}, up.URL)
			}
			both := append(chatLines(150, "m"), chatLines(300, "n")[150:]...)
			id := w.submit(both, func(b *store.Batch) { b.Options.MaxConcurrency = 3 })
			w.awaitEnd(id)
			w.results(id)
			if up.most > 3 {
				t.Errorf("%d lines of a batch were in flight at once, want at most 3", up.most)
			}
			id = w.submit(both, nil)
			w.awaitEnd(id)
			if up.most > 8 {
				t.Errorf("%d lines were in flight at once on a runner, want at most 8", up.most)
			}
		})
	}
}

func TestTokenLimitHoldsOverAllDispatchers(t *testing.T) {
	w := newWorld(t)
	up := serve(t, slowly(50*time.Millisecond), "m")
	for i := range 3 {
		w.dispatcher(fmt.Sprint("node-", i), func(cfg *dispatch.Config, deps *dispatch.Deps) {
			cfg.ChunkLines, cfg.Plan.LookAhead = 10, 10
			deps.Registry = fixedLines(8)
		}, up.URL)
	}
	id := w.submit(chatLines(600, "m"), func(b *store.Batch) { b.Options.MaxTotalTokens = 1000 })
	// what is in flight may finish
	if b := w.awaitEnd(id); b.State != store.Failed || b.Usage.TotalTokens > 1000+8*10 {
		t.Errorf("got %s after %d tokens, want it stopped soon after 1,000", b.State,
			b.Usage.TotalTokens)
	}
}

// The results of a leader that has ended count before their chunks are claimed again.
func TestTokenLimitCountsWhatAnotherLeftBehind(t *testing.T) {
	w := newWorld(t)
	up := serve(t, slowly(20*time.Millisecond), "m")
	node := func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.ChunkLines, cfg.Drain = 40, 0
		deps.Registry = fixedLines(4)
	}
	_, stop := w.dispatcher("a", node, up.URL)
	id := w.submit(chatLines(400, "m"), func(b *store.Batch) { b.Options.MaxTotalTokens = 1000 })
	w.await(id, "near its limit", func(store.Batch) bool { return w.progress(id).Completed >= 80 })
	stop()
	w.dispatcher("b", node, up.URL)
	if b := w.awaitEnd(id); b.State != store.Failed || b.Usage.TotalTokens > 1000+4*10 {
		t.Errorf("got %s after %d tokens, want it stopped soon after 1,000", b.State,
			b.Usage.TotalTokens)
	}
}

// waitForModels is for dispatchers with different upstreams: before one of them leads its models,
// the others don't know that it serves them.
func waitForModels(cfg *dispatch.Config, _ *dispatch.Deps) { cfg.WaitForModels = true }

// Dispatchers that differ in their upstreams share the work by model.
func TestDispatchersOfDifferentModelsWorkSideBySide(t *testing.T) {
	w := newWorld(t)
	one, other := serve(t, nil, "m"), serve(t, nil, "n")
	w.dispatcher("a", waitForModels, one.URL)
	w.dispatcher("b", waitForModels, other.URL)
	id := w.submit(append(chatLines(50, "m"), chatLines(100, "n")[50:]...), nil)
	if b := w.awaitEnd(id); b.Counts.Completed != 100 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if one.requests() != 50 || other.requests() != 50 {
		t.Errorf("%d and %d requests, want 50 each", one.requests(), other.requests())
	}
}

// What another leads in part is not waited for for ever.
func TestOverlappingDispatchersDoNotStarveAModel(t *testing.T) {
	w := newWorld(t)
	shared, own := serve(t, nil, "m"), serve(t, nil, "m", "n")
	short := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.LeaseTTL, cfg.WaitForModels = 3*time.Second, true
	}
	w.dispatcher("a", short, shared.URL)
	w.await(w.submit(chatLines(1, "m"), nil), "done", func(b store.Batch) bool {
		return b.State == store.Completed
	})
	w.dispatcher("b", short, own.URL)
	id := w.submit(chatLines(20, "n"), nil)
	if b := w.awaitEnd(id); b.Counts.Completed != 20 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
}

func TestStandbyTakesOver(t *testing.T) {
	w := newWorld(t)
	up := serve(t, slowly(time.Millisecond), "m")
	small := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ChunkLines, cfg.Drain = 20, 50*time.Millisecond
	}
	_, stop := w.dispatcher("a", small, up.URL)
	first := w.submit(chatLines(10, "m"), nil)
	w.awaitEnd(first)
	w.dispatcher("b", small, up.URL)
	id := w.submit(chatLines(3000, "m"), nil)
	w.await(id, "in flight", func(store.Batch) bool { return w.progress(id).Completed > 300 })
	stop()
	if b := w.awaitEnd(id); b.Counts.Completed != 3000 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if n := up.requests(); n > 3010+16 {
		t.Errorf("%d requests for 3,010 lines", n)
	}
}

// A shutdown that waits for answers for longer than a lease still records them: no line is sent
// twice.
func TestShutdownKeepsItsLines(t *testing.T) {
	w := newWorld(t)
	steps := make(stepwise)
	up := serve(t, steps.answer, "m")
	short := func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.LeaseTTL, cfg.Drain = 3*time.Second, time.Minute
		deps.Registry = fixedLines(4)
	}
	leader, stop := w.dispatcher("a", short, up.URL)
	until(t, "the first process leads", func() bool { return len(leader.Pools()) > 0 })
	standby, _ := w.dispatcher("b", short, up.URL)
	until(t, "the second stands by", standby.StandsBy)
	id := w.submit(chatLines(20, "m"), nil)
	until(t, "lines are in flight", func() bool { return up.requests() == 4 })
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	time.Sleep(2 * 3 * time.Second) // two leases
	if !standby.StandsBy() {
		t.Error("the second process took over what the first one drains")
	}
	steps.permit(4)
	<-stopped
	close(steps)
	if b := w.awaitEnd(id); b.Counts.Completed != 20 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if n := up.requests(); n != 20 {
		t.Errorf("%d requests for 20 lines", n)
	}
}

// A leader that is cut off from the store for longer than its lease sends nothing more, and does
// not lead again when it is back.
func TestSuspendedLeaderIsSuperseded(t *testing.T) {
	w := newWorld(t)
	up := serve(t, slowly(2*time.Millisecond), "m")
	cut := &frozen{Metadata: w.meta}
	short := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ChunkLines, cfg.LeaseTTL = 20, 3*time.Second
	}
	w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		short(cfg, deps)
		deps.Metadata = cut
	}, up.URL)
	w.awaitEnd(w.submit(chatLines(10, "m"), nil))
	w.dispatcher("b", short, up.URL)
	id := w.submit(chatLines(4000, "m"), func(b *store.Batch) { b.Options.MaxConcurrency = 4 })
	w.await(id, "in flight", func(store.Batch) bool { return w.progress(id).Completed > 100 })
	cut.freeze()
	w.await(id, "taken over", func(b store.Batch) bool {
		return b.State.Terminal() || w.progress(id).Completed > 2000
	})
	close(cut.thaw)
	b := w.awaitEnd(id)
	if b.State != store.Completed || b.Counts.Completed != 4000 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if up.most > 16 {
		t.Errorf("%d lines in flight at once", up.most)
	}
	// What the frozen leader had in flight or answered but not journaled at the end of its lease is
	// sent again, not more.
	if n := up.requests(); n > 4010+2*20+16 {
		t.Errorf("%d requests for 4,010 lines", n)
	}
}

// failingResign is a store that fails the first attempts to give up leadership.
type failingResign struct {
	dispatch.Metadata
	fails atomic.Int32
}

func (u *failingResign) Resign(ctx context.Context, o store.Owner, names []string) error {
	if u.fails.Add(-1) >= 0 {
		return store.ErrUnavailable
	}
	return u.Metadata.Resign(ctx, o, names)
}

// A model that moves to another dispatcher's upstream is given up, though the store does not listen
// at first.
func TestLeadershipIsResignedOnceTheStoreWorks(t *testing.T) {
	w := newWorld(t)
	var other atomic.Bool
	from := serve(t, nil, "m")
	serving := from.Config.Handler
	from.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && other.Load() {
			io.WriteString(w, `{"data":[{"id":"n"}]}`)
			return
		}
		serving.ServeHTTP(w, r)
	})
	failing := &failingResign{Metadata: w.meta}
	failing.fails.Store(2)
	quick := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ModelsEvery, cfg.LeaseTTL = 50*time.Millisecond, 3*time.Second
		cfg.WaitForModels = true // n is served as soon as a has noticed it
	}
	w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		quick(cfg, deps)
		deps.Metadata = failing
	}, from.URL)
	w.awaitEnd(w.submit(chatLines(1, "m"), nil))
	other.Store(true)
	if b := w.awaitEnd(w.submit(chatLines(1, "n"), nil)); b.Counts.Completed != 1 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.dispatcher("b", quick, serve(t, nil, "m").URL)
	if b := w.awaitEnd(w.submit(chatLines(5, "m"), nil)); b.Counts.Completed != 5 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
}

// A process whose runners no longer serve a model gives back what it has claimed of it, so that
// another process can go on.
func TestChunksOfModelsThatMoveAreGivenBack(t *testing.T) {
	w := newWorld(t)
	var moved atomic.Bool
	steps := make(stepwise)
	from := serve(t, steps.answer, "m")
	serving := from.Config.Handler
	from.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && moved.Load() {
			io.WriteString(w, `{"data":[{"id":"n"}]}`)
			return
		}
		serving.ServeHTTP(w, r)
	})
	quick := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ModelsEvery, cfg.LeaseTTL, cfg.ChunkLines = 50*time.Millisecond, 3*time.Second, 40
		cfg.WaitForModels = true
	}
	a, _ := w.dispatcher("a", quick, from.URL)
	id := w.submit(chatLines(100, "m"), nil)
	steps.permit(5)
	w.await(id, "begun", func(store.Batch) bool { return w.progress(id).Completed == 5 })
	other := serve(t, nil, "m")
	w.dispatcher("b", quick, other.URL)
	moved.Store(true)
	until(t, "the runner serves another model", func() bool {
		all := survey(t, a).Runners
		return len(all) == 1 && all[0].Models[0] == "n"
	})
	close(steps) // what is in flight ends
	if b := w.awaitEnd(id); b.Counts.Completed != 100 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
	if from.requests() != 5+16 || other.requests() != 100-5-16 {
		t.Errorf("%d requests to the first runner, which had 5 and then 16 lines, and %d to the "+
			"other for the rest of 100", from.requests(), other.requests())
	}
	until(t, "nothing is left", func() bool { return len(survey(t, a).Jobs) == 0 })
}
