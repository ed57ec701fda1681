package dispatch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

func TestADeadlineWaitsForTheTimeThatThingsExpireBy(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil) // no model: the lines wait
	var lag atomic.Int64
	lag.Store(int64(time.Hour))
	id := w.submit(chatLines(5, "m"), func(b *store.Batch) {
		b.Deadline = time.Now().Add(-time.Minute)
	})
	var looks atomic.Int64
	w.dispatcher("n", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Expiry = func() time.Time {
			looks.Add(1)
			return time.Now().Add(-time.Duration(lag.Load()))
		}
	}, up.URL)
	w.await(id, "running", func(b store.Batch) bool { return b.State == store.InProgress })
	eventually(t, "the batch is looked at", func() bool { return looks.Load() > 0 })
	seen := looks.Load()
	w.modify(id, func(b *store.Batch) { b.Metadata = map[string]string{"touched": "yes"} })
	eventually(t, "it is looked at again", func() bool { return looks.Load() > seen })
	if b := w.batch(id); b.State != store.InProgress {
		t.Errorf("the batch is %s by a clock that isn't confirmed", b.State)
	}
	if n := looks.Load(); n > 20 {
		t.Errorf("it was looked at %d times", n)
	}
	lag.Store(0)
	w.modify(id, func(b *store.Batch) { b.Metadata = nil })
	if b := w.awaitEnd(id); b.State != store.Expired {
		t.Errorf("the batch ended %s, want expired", b.State)
	}
}
