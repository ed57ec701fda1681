package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func lastUseOfAKeyIsKept(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	wantEqual(t, "uses of an empty store", len(got(m.UsedKeys(ctx))(t)), 0)
	use := func(hash string, minute int) store.KeyUse {
		return store.KeyUse{Hash: hash, At: noon.Add(time.Duration(minute) * time.Minute)}
	}
	must(t, m.NoteKeys(ctx, []store.KeyUse{use("b", 5), use("a", 5)}, noon))
	must(t, m.NoteKeys(ctx, []store.KeyUse{use("a", 4), use("b", 6), use("c", 1)}, noon))
	wantEqual(t, "the last uses", got(m.UsedKeys(ctx))(t),
		[]store.KeyUse{use("a", 5), use("b", 6), use("c", 1)})
	must(t, m.NoteKeys(ctx, []store.KeyUse{use("d", 2)}, use("", 5).At))
	wantEqual(t, "the uses that are not too old", got(m.UsedKeys(ctx))(t),
		[]store.KeyUse{use("a", 5), use("b", 6)})
	must(t, m.NoteKeys(ctx, nil, use("", 6).At))
	wantEqual(t, "what is left", got(m.UsedKeys(ctx))(t), []store.KeyUse{use("b", 6)})
}

func keysAreNotedConcurrently(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	const processes, keys, rounds = 4, 20, 5
	var running sync.WaitGroup
	for p := range processes {
		running.Go(func() {
			for round := range rounds {
				var uses []store.KeyUse
				for k := range keys {
					uses = append(uses, store.KeyUse{Hash: fmt.Sprintf("%02d", k),
						At: noon.Add(time.Duration(round*processes+p) * time.Minute)})
				}
				if p%2 == 0 {
					slices.Reverse(uses)
				}
				if err := m.NoteKeys(ctx, uses, noon); err != nil {
					t.Errorf("process %d: %v", p, err)
				}
			}
		})
	}
	running.Wait()
	uses := got(m.UsedKeys(ctx))(t)
	wantEqual(t, "keys", len(uses), keys)
	for _, u := range uses {
		wantEqual(t, "last use of "+u.Hash, u.At,
			noon.Add((rounds*processes-1)*time.Minute))
	}
}
