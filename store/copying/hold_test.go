package copying_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/copying"
)

// elsewhere is the same store for another process, on another machine.
func (p place) elsewhere(t *testing.T) place {
	p.options.Node, p.options.Directory = "elsewhere", t.TempDir()
	return p
}

// during calls do once, within the first write of a blob.
type during struct {
	store.Blobs
	once *sync.Once
	do   func()
}

func (d during) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	d.once.Do(d.do)
	return d.Blobs.Create(ctx, key)
}

// A second copy is refused while one runs, into the same target and from the same source. So is a
// daemon.
func TestCopiesAndDaemonsExcludeEachOther(t *testing.T) {
	from, _ := newCluster(t)
	to, _ := newCluster(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	other := newEmbedded(t)
	other.open(t, func(b *store.Backend) { fill(t, b) })
	ran := false
	_, err := copyStores(t, from, to, func(_, target *store.Backend) {
		target.Blobs = during{target.Blobs, new(sync.Once), func() {
			ran = true
			for name, second := range map[string][2]place{
				"into the target": {other, to.elsewhere(t)},
				"from the source": {from.elsewhere(t), newEmbedded(t)},
				"of both":         {from.elsewhere(t), to.elsewhere(t)},
			} {
				_, err := copyStores(t, second[0], second[1], nil)
				wantError(t, err, "another `tidefill store copy` uses this store")
				if err != nil && !strings.Contains(err.Error(), "copy A to B") {
					t.Errorf("%s: %v", name, err)
				}
			}
			daemon := from.elsewhere(t)
			daemon.options.Moving = false
			backend, _ := store.FindBackend(daemon.name)
			_, err := backend.Open(t.Context(), daemon.options)
			wantError(t, err, "`tidefill store copy` uses this store now")
		}}
	})
	must(t, err)
	if !ran {
		t.Error("no blob was written")
	}
	to.open(t, func(b *store.Backend) { check(t, b) })
	daemon := to
	daemon.options.Moving = false
	daemon.open(t, func(*store.Backend) {})
}

// The locks of a copy that was killed end with its lease.
func TestAKilledCopyFreesItsLocks(t *testing.T) {
	from := newEmbedded(t)
	to, _ := newCluster(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	const lease = 2 * time.Second
	to.open(t, func(b *store.Backend) {
		killed, err := b.Records.Register(t.Context(), store.CopyNode+"killed", lease)
		must(t, err)
		_, ok, err := b.Records.Lock(t.Context(), killed, store.CopyLock)
		if err != nil || !ok {
			t.Fatalf("lock: %v, %v", ok, err)
		}
	})
	_, err := copyStores(t, from, to, nil)
	wantError(t, err, "B: another `tidefill store copy` uses this store, or was killed less than")
	time.Sleep(lease)
	_, err = copyStores(t, from, to, nil)
	must(t, err)
}

// mute is a store whose leases can't be renewed.
type mute struct{ store.Records }

func (m mute) Renew(context.Context, store.Owner, time.Duration) error {
	return fmt.Errorf("renew: %w", store.ErrUnavailable)
}

// A copy that can't renew its locks ends before it marks a store as the one in use.
func TestACopyEndsWithItsLocks(t *testing.T) {
	from, to := newEmbedded(t), newEmbedded(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	from.open(t, func(source *store.Backend) {
		to.open(t, func(target *store.Backend) {
			target.Records = mute{target.Records}
			target.Blobs = during{target.Blobs, new(sync.Once),
				func() { time.Sleep(1500 * time.Millisecond) }}
			_, err := copying.Copy(t.Context(), side("A", source), side("B", target),
				copying.Options{Lease: time.Second})
			wantError(t, err, "B: the lock of the copy was lost; copy again")
			m, err := source.Records.Move(t.Context())
			if err != nil || m.State != store.MoveNone {
				t.Errorf("the source is %+v, %v", m, err)
			}
		})
	})
	_, err := copyStores(t, from, to, nil)
	must(t, err)
}
