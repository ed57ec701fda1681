package dispatch_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// The results of a chunk count once for the limits of its batch if its model loses its last runner,
// and the same process claims the chunk again.
func TestLimitsCountAChunkThatWasGivenBackOnce(t *testing.T) {
	up := newChanging(t, "m")
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() { close(gone) })
	t.Cleanup(leave)
	var requests atomic.Int64
	var again atomic.Bool
	up.answer = func(w http.ResponseWriter, _ *http.Request) {
		if !again.Load() && requests.Add(1) > 15 {
			<-gone
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, okBody)
	}
	w := newWorld(t)
	d, _ := w.dispatcher("a", up.often, up.URL)
	id := w.submit(chatLines(20, "m"), func(b *store.Batch) {
		b.Options = store.Options{MaxTotalTokens: 200} // what the answers use
	})
	w.await(id, "with 15 results", func(store.Batch) bool { return w.progress(id).Completed == 15 })
	up.list("other")
	until(t, "another model is listed", func() bool { return d.Models()[0].ID == "other" })
	leave()
	until(t, "the chunk is given back", func() bool {
		n, err := w.meta.CountChunks(t.Context(), store.Owner{}, id, nil)
		return err == nil && n.Free == 1
	})
	again.Store(true)
	up.list("m")
	if b := w.awaitEnd(id); b.State != store.Completed || b.Usage.TotalTokens != 200 {
		t.Errorf("the batch is %s with %d tokens: %v", b.State, b.Usage.TotalTokens, b.Errors)
	}
}

// A batch whose results are larger than its profile permits ends and keeps its finished lines. What
// was written before a restart counts as well.
func TestOutputLimitEndsABatch(t *testing.T) {
	run := func(restart bool) (completed int) {
		w := newWorld(t)
		id := w.submit(chatLines(30, "m"), func(b *store.Batch) {
			b.Options = store.Options{MaxConcurrency: 1,
				MaxResultBytes: int64(10 * len(okBody))}
		})
		var answered atomic.Int64
		// A line is answered after the results of all before it are counted.
		answer := func(to http.ResponseWriter, r *http.Request) {
			before := int(answered.Load())
			until(t, "all earlier results are counted", func() bool {
				return w.progress(id).Completed >= before || r.Context().Err() != nil
			})
			answered.Add(1)
			io.WriteString(to, okBody)
		}
		up := serve(t, func(to http.ResponseWriter, r *http.Request) {
			if restart && answered.Load() >= 4 {
				<-r.Context().Done()
				return
			}
			answer(to, r)
		}, "m")
		_, stop := w.dispatcher("a", func(cfg *dispatch.Config, _ *dispatch.Deps) {
			cfg.Drain = time.Millisecond
		}, up.URL)
		if restart {
			w.await(id, "with 4 results", func(store.Batch) bool {
				return w.progress(id).Completed == 4
			})
			stop()
			w.dispatcher("b", nil, serve(t, answer, "m").URL)
		}
		b := w.awaitEnd(id)
		if b.State != store.Failed || len(b.Errors) != 1 ||
			b.Errors[0].Code != "output_limit_exceeded" ||
			!strings.Contains(b.Errors[0].Message, "quota.max_output_size_gb") {
			t.Errorf("the batch is %s: %+v", b.State, b.Errors)
		}
		output, errs := w.results(id)
		if len(output) != b.Counts.Completed || len(output)+len(errs) != 30 {
			t.Errorf("%d results and %d errors of 30 lines, counts %+v", len(output), len(errs),
				b.Counts)
		}
		for _, e := range errs {
			if e.Error == nil || e.Error.Code != "batch_stopped" {
				t.Errorf("the error of a line that did not run: %+v", e)
			}
		}
		return len(output)
	}
	without, with := run(false), run(true)
	if without < 4 || without > 11 || with < without-1 || with > without+1 {
		t.Errorf("%d lines are answered, and %d over a restart, want about 10 and as many", without,
			with)
	}
}
