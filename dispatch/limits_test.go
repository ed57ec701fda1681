package dispatch_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

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
