package dispatch_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// stepwise answers as many requests as it is permitted to.
type stepwise chan struct{}

func (s stepwise) answer(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s:
		io.WriteString(w, okBody)
	case <-r.Context().Done():
	}
}

func (s stepwise) permit(n int) {
	for range n {
		s <- struct{}{}
	}
}

// awaitLeft waits until a dispatcher knows that so many lines are left.
func awaitLeft(t *testing.T, what string, d *dispatch.Dispatcher, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, j := range survey(t, d).Jobs {
			left += j.Lines
		}
		if left == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d lines are left, want %d", what, left, want)
		}
	}
}

func twoModels(each int) []string {
	return append(chatLines(each, "m"), chatLines(2*each, "n")[each:]...)
}

// Every process knows the lines left, whichever works on them, within a chunk too.
func TestStandbyKnowsTheLinesLeft(t *testing.T) {
	w := newWorld(t)
	steps := make(stepwise)
	up := serve(t, steps.answer, "m", "n")
	node := func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.ChunkLines, cfg.Drain = 50, 0
		deps.Registry = fixedLines(4)
	}
	leader, stop := w.dispatcher("a", node, up.URL)
	until(t, "the first process leads", func() bool { return len(leader.Pools()) > 0 })
	standby, _ := w.dispatcher("b", node, up.URL)
	until(t, "the second stands by", standby.StandsBy)
	id := w.submit(twoModels(100), nil)
	awaitLeft(t, "at first", standby, 200)
	steps.permit(130)
	done := func(n int) func(store.Batch) bool {
		return func(store.Batch) bool { return w.progress(id).Completed == n }
	}
	w.await(id, "done with 130 lines", done(130))
	awaitLeft(t, "the leader", leader, 70)
	awaitLeft(t, "the standby", standby, 70)
	stop() // lines in flight end with it
	until(t, "the second leads", func() bool { return !standby.StandsBy() })
	steps.permit(10)
	w.await(id, "done with 140 lines", func(store.Batch) bool {
		return w.progress(id).Completed >= 140
	})
	left := 200 - w.progress(id).Completed
	awaitLeft(t, "the second as leader", standby, left)
	close(steps)
	w.awaitEnd(id)
	awaitLeft(t, "at the end", standby, 0)
}

// The lines that were done before a restart, and new runners, which have all batches counted again,
// change nothing in the count.
func TestLinesLeftOutliveRestartsAndNewRunners(t *testing.T) {
	w := newWorld(t)
	steps := make(stepwise)
	up := serve(t, steps.answer, "m", "n")
	node := func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.ChunkLines, cfg.Drain = 50, 0
		deps.Registry = fixedLines(4)
	}
	_, stop := w.dispatcher("a", node, up.URL)
	id := w.submit(twoModels(100), nil)
	steps.permit(20)
	w.await(id, "done with 20 lines", func(store.Batch) bool {
		return w.progress(id).Completed == 20
	})
	stop()
	d, _ := w.dispatcher("a", node, up.URL)
	awaitLeft(t, "after a restart", d, 180)
	steps.permit(7)
	awaitLeft(t, "after 27 lines", d, 173)
	settings := w.settings(dispatch.Upstream{URL: up.URL})
	settings.ChunkLines = 50
	settings.Registry = fixedLines(4)
	for i := range 3 {
		settings.Upstreams = append(settings.Upstreams, dispatch.Upstream{
			URL: serve(t, steps.answer, "m", "n", fmt.Sprint("other-", i)).URL})
		apply(t, d, settings)
		until(t, "the runner is up", func() bool { return len(survey(t, d).Runners) == 2+i })
		awaitLeft(t, "with another runner", d, 173)
	}
	close(steps)
	w.awaitEnd(id)
	w.results(id)
}
