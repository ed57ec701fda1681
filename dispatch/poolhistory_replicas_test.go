package dispatch_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
)

// Of two processes the one that leads a pool adds to its history, and the other one continues it.
// What was counted since the last save is saved before lines drain, and when they have.
func TestHistoryOfTwoProcessesCountsOnce(t *testing.T) {
	w := newWorld(t)
	var closed atomic.Bool
	waiting, release := atomic.Int32{}, make(chan struct{})
	up := serve(t, http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if closed.Load() {
			waiting.Add(1)
			<-release
		}
		okHandler(out, in)
	}), "m")
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer)
	lines := func() (sum int64) {
		hours, err := w.meta.PoolHours(t.Context(), "m", time.Now().Add(-2*time.Hour))
		if err != nil || len(hours) > 2 { // two, if an hour has ended meanwhile
			t.Fatalf("the history is %+v, %v", hours, err)
		}
		for _, h := range hours {
			sum += h.Lines
		}
		return sum
	}
	await := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not so: %s", what)
			}
		}
	}
	rarely := func(cfg *dispatch.Config, _ *dispatch.Deps) { cfg.LearnedEvery = time.Hour }
	_, stopFirst := w.dispatcher("a", rarely, up.URL)
	w.awaitEnd(w.submit(chatLines(30, "m"), nil))
	_, stopSecond := w.dispatcher("b", rarely, up.URL)
	w.awaitEnd(w.submit(chatLines(20, "m"), nil))
	closed.Store(true)
	last := w.submit(chatLines(7, "m"), nil)
	await("seven lines are in flight", func() bool { return waiting.Load() == 7 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stopFirst()
	}()
	await("50 lines are saved before the others drain", func() bool { return lines() == 50 })
	closed.Store(false)
	answer()
	<-stopped
	if got := lines(); got != 57 {
		t.Errorf("%d lines are saved after the others drained, want 57", got)
	}
	w.awaitEnd(last)
	w.awaitEnd(w.submit(chatLines(5, "m"), nil))
	stopSecond()
	if got := lines(); got != 62 {
		t.Errorf("%d lines are saved by both processes, want 62", got)
	}
}
