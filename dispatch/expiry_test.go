package dispatch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

func TestDeadlineFollowsExpiryTime(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil) // no model: the lines wait
	var lag atomic.Int64
	lag.Store(int64(time.Hour))
	id := w.submit(chatLines(5, "m"), func(b *store.Batch) {
		b.Deadline = time.Now().Add(-time.Minute)
	})
	var checks events
	w.dispatcher("n", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Expiry = func() time.Time {
			checks.add()
			return time.Now().Add(-time.Duration(lag.Load()))
		}
	}, up.URL)
	w.await(id, "running", func(b store.Batch) bool { return b.State == store.InProgress })
	checks.await(t, 1)
	seen := checks.count()
	w.modify(id, func(b *store.Batch) { b.Metadata = map[string]string{"touched": "yes"} })
	checks.await(t, seen+1)
	if b := w.batch(id); b.State != store.InProgress {
		t.Errorf("the batch is %s by an unconfirmed clock", b.State)
	}
	if n := checks.count(); n > 20 {
		t.Errorf("the deadline was checked %d times", n)
	}
	lag.Store(0)
	w.modify(id, func(b *store.Batch) { b.Metadata = nil })
	if b := w.awaitEnd(id); b.State != store.Expired {
		t.Errorf("the batch ended %s, want expired", b.State)
	}
}
