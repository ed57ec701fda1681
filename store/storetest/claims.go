package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

func newChunks(batch, model string, n int) []store.Chunk {
	chunks := make([]store.Chunk, n)
	for i := range chunks {
		chunks[i] = store.Chunk{ChunkID: store.ChunkID{Batch: batch, Index: i}, Model: model,
			First: i * 10, Count: 10}
	}
	return chunks
}

// addBatch creates a batch with n chunks of the model "m".
func addBatch(t testing.TB, m Store, batch string, n int) {
	t.Helper()
	must(t, m.CreateBatch(t.Context(), newBatch(batch, "t")))
	must(t, m.AddChunks(t.Context(), batch, newChunks(batch, "m", n)))
}

// allHeld holds the indexes of all chunks of any batch here. An owner passes it that knows of all
// its claims.
var allHeld = func() (all []int) {
	for i := range 100 {
		all = append(all, i)
	}
	return all
}()

func indexes(chunks []store.Chunk) (list []int) {
	for _, c := range chunks {
		list = append(list, c.Index)
	}
	return list
}

func chunksAreAddedOnce(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 3)
	must(t, m.AddChunks(ctx, "b", newChunks("b", "other", 9)))
	wantEqual(t, "chunks", got(m.Chunks(ctx, "b"))(t), newChunks("b", "m", 3))
	wantEqual(t, "counts", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(t),
		store.ChunkCounts{Free: 3})
	wantEqual(t, "counts of no batch", got(m.CountChunks(ctx, store.Owner{}, "nothing", nil))(t),
		store.ChunkCounts{})

	// Of several calls at the same time one takes effect.
	must(t, m.CreateBatch(ctx, newBatch("raced", "t")))
	var running sync.WaitGroup
	for n := 1; n <= 4; n++ {
		running.Go(func() {
			if err := m.AddChunks(ctx, "raced", newChunks("raced", fmt.Sprint(
				"m", n), 5*n)); err != nil {
				t.Errorf("add chunks: %v", err)
			}
		})
	}
	running.Wait()
	chunks := got(m.Chunks(ctx, "raced"))(t)
	for _, c := range chunks {
		if c.Model != fmt.Sprint("m", len(chunks)/5) {
			t.Errorf("chunk %d of %d is of another call, %s", c.Index, len(chunks), c.Model)
		}
	}
}

func chunksAreClaimedInOrder(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	must(t, m.CreateBatch(ctx, newBatch("b", "t")))
	chunks := newChunks("b", "even", 13)
	for i := range chunks {
		if i%2 == 1 {
			chunks[i].Model = "odd"
		}
	}
	must(t, m.AddChunks(ctx, "b", chunks))
	o := got(m.Register(ctx, "n", time.Minute))(t)
	claim := func(model string, n int) []store.Chunk {
		t.Helper()
		return got(m.ClaimChunks(ctx, o, "b", model, n, allHeld))(t)
	}
	wantEqual(t, "none asked for", indexes(claim("odd", 0)), nil)
	wantEqual(t, "first claim", indexes(claim("odd", 2)), []int{1, 3})
	second := claim("odd", 2)
	wantEqual(t, "second claim", indexes(second), []int{5, 7})
	wantEqual(t, "other model", indexes(claim("even", 1)), []int{0})
	wantEqual(t, "unknown model", indexes(claim("none", 1)), nil)
	wantEqual(t, "unknown batch", indexes(got(m.ClaimChunks(ctx, o, "nothing", "odd", 1,
		allHeld))(t)), nil)

	must(t, m.ReleaseChunk(ctx, o, second[0]))
	wantErr(t, "release twice", m.ReleaseChunk(ctx, o, second[0]), store.ErrFenced)
	wantErr(t, "finish after the release", m.FinishChunks(ctx, o, second[0]), store.ErrFenced)
	again := claim("odd", 10)
	wantEqual(t, "released and rest", indexes(again), []int{5, 9, 11})
	if again[0].Epoch <= second[0].Epoch {
		t.Errorf("got epoch %d after %d, want a higher one", again[0].Epoch, second[0].Epoch)
	}
	wantErr(t, "finish by an old epoch", m.FinishChunks(ctx, o, second[0]), store.ErrFenced)

	done := again[0]
	done.Tally = store.Tally{Completed: 9, Failed: 1, Usage: batchfile.Usage{InputTokens: 7,
		ReasoningTokens: 3}}
	must(t, m.FinishChunks(ctx, o, done))
	must(t, m.FinishChunks(ctx, o, done)) // the answer to the first may have got lost
	done.Counted = c.Now().UTC().Truncate(time.Hour)
	wantErr(t, "release a done chunk", m.ReleaseChunk(ctx, o, done), store.ErrFenced)
	done.Done = true
	wantEqual(t, "done chunk", got(m.Chunks(ctx, "b"))(t)[5], done)
	wantEqual(t, "counts", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(t),
		store.ChunkCounts{Free: 6, Claimed: 6, Done: 1})
}

func chunksAreFinishedTogether(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "a", 3)
	addBatch(t, m, "b", 2)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	first := got(m.ClaimChunks(ctx, o, "a", "m", 3, allHeld))(t)
	second := got(m.ClaimChunks(ctx, o, "b", "m", 2, allHeld))(t)
	all := []store.Chunk{second[1], first[2], first[0], second[0]}
	for i := range all {
		all[i].Tally = store.Tally{Completed: 10 + i, Failed: 1}
	}
	stale := all[2]
	stale.Epoch--
	wantErr(t, "one claim is not the newest", m.FinishChunks(ctx, o, all[0], all[1], stale),
		store.ErrFenced)
	wantEqual(t, "nothing is done", got(m.SumDone(ctx, map[string][]int{"a": nil, "b": nil}))(t),
		map[string]store.DoneChunks{})
	must(t, m.FinishChunks(ctx, o, all...))
	must(t, m.FinishChunks(ctx, o, all...)) // the answer to the first may have got lost
	must(t, m.FinishChunks(ctx, o))
	wantEqual(t, "sums", got(m.SumDone(ctx, map[string][]int{"a": {0, 1, 2}, "b": {0, 1}}))(t),
		map[string]store.DoneChunks{"a": {Completed: 23, Failed: 2, Done: []int{0, 2}},
			"b": {Completed: 23, Failed: 2, Done: []int{0, 1}}})
}

func chunksAreReopened(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 2)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	c := got(m.ClaimChunks(ctx, o, "b", "m", 1, allHeld))(t)[0]
	must(t, m.ReopenChunk(ctx, c))
	wantEqual(t, "a claimed chunk stays claimed", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(
		t), store.ChunkCounts{Free: 1, Claimed: 1})
	c.Tally = store.Tally{Completed: 9, Failed: 1, Usage: batchfile.Usage{InputTokens: 7}}
	must(t, m.FinishChunks(ctx, o, c))
	stale := c
	stale.Epoch--
	must(t, m.ReopenChunk(ctx, stale))
	wantEqual(t, "another epoch changes nothing", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(
		t), store.ChunkCounts{Free: 1, Done: 1})
	must(t, m.ReopenChunk(ctx, c))
	wantEqual(t, "reopened", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(t),
		store.ChunkCounts{Free: 2})
	wantEqual(t, "done chunks", got(m.SumDone(ctx, map[string][]int{"b": {c.Index}}))(t),
		map[string]store.DoneChunks{})
	wantErr(t, "finish by the old claim", m.FinishChunks(ctx, o, c), store.ErrFenced)
	again := got(m.ClaimChunks(ctx, o, "b", "m", 1, allHeld))(t)[0]
	if again.Index != c.Index || again.Epoch <= c.Epoch || again.Tally != (store.Tally{}) {
		t.Errorf("claimed %+v after %+v, want the same chunk at a higher epoch with nothing done",
			again, c)
	}

	must(t, m.FinishChunks(ctx, o, again))
	got(store.Modify(ctx, m, "", "b", func(b *store.Batch) error {
		b.State = store.Cancelled
		return nil
	}))(t)
	must(t, m.ReopenChunk(ctx, again))
	wantEqual(t, "chunks of an ended batch", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(t),
		store.ChunkCounts{Free: 1, Done: 1})
}

func doneChunksAreSummed(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 3)
	addBatch(t, m, "none", 2)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	chunks := got(m.ClaimChunks(ctx, o, "b", "m", 3, allHeld))(t)
	chunks[0].Tally = store.Tally{Completed: 9, Failed: 1}
	chunks[2].Tally = store.Tally{Completed: 5, Failed: 2}
	must(t, m.FinishChunks(ctx, o, chunks[0]))
	must(t, m.FinishChunks(ctx, o, chunks[2]))
	sums := got(m.SumDone(ctx, map[string][]int{"b": {2, 1, 77}, "none": {0}, "unknown": {0}}))(t)
	wantEqual(t, "some chunks", sums,
		map[string]store.DoneChunks{"b": {Completed: 14, Failed: 3, Done: []int{2}}})
	sums = got(m.SumDone(ctx, map[string][]int{"b": nil}))(t)
	wantEqual(t, "no chunks", sums, map[string]store.DoneChunks{"b": {Completed: 14, Failed: 3}})
	sums = got(m.SumDone(ctx, nil))(t)
	wantEqual(t, "no batches", sums, map[string]store.DoneChunks{})
}

func ownersJoinTeams(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	a := got(m.Register(ctx, "a", time.Minute))(t)
	b := got(m.Register(ctx, "b", time.Hour))(t)
	other := got(m.Register(ctx, "c", time.Hour))(t)
	join := func(what string, o store.Owner, team string, want int) {
		t.Helper()
		wantEqual(t, what, got(m.Join(ctx, o, team))(t), want)
	}
	join("alone", a, "x", 1)
	join("another team", other, "y", 1)
	join("second member", b, "x", 2)
	join("again", a, "x", 2)
	join("change of team", other, "x", 3)
	c.advance(time.Minute)
	join("after the end of a lease", b, "x", 2)
	must(t, m.Renew(ctx, a, time.Minute))
	join("renewed", b, "x", 3)
	must(t, m.Unregister(ctx, other))
	join("after an end", b, "x", 2)
	got(m.Register(ctx, "a", time.Minute))(t)
	join("before the next incarnation joins", b, "x", 1)
	_, err := m.Join(ctx, a, "x")
	wantErr(t, "join by a superseded owner", err, store.ErrFenced)
}

func ownersLiveWithLease(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	first := got(m.Register(ctx, "a", time.Minute))(t)
	second := got(m.Register(ctx, "b", time.Hour))(t)
	unknown := store.Owner{Node: "c", Incarnation: 1}
	live := func(what string, want ...store.Owner) {
		t.Helper()
		owners := got(m.LiveOwners(ctx, []store.Owner{first, second, unknown}))(t)
		slices.SortFunc(owners, func(a, b store.Owner) int {
			return strings.Compare(a.Node, b.Node)
		})
		wantEqual(t, what, owners, want)
	}
	live("both", first, second)
	c.advance(time.Minute)
	live("after the end of a lease", second)
	got(m.Register(ctx, "b", time.Hour))(t)
	live("after the node registered again")
	wantEqual(t, "none asked for", len(got(m.LiveOwners(ctx, nil))(t)), 0)
}

func concurrentClaims(t *testing.T, m Store, _ *clock) {
	const chunks, owners = 60, 4
	ctx := t.Context()
	addBatch(t, m, "b", chunks)
	var claims [chunks]atomic.Int32
	var running sync.WaitGroup
	for i := range owners {
		running.Go(func() {
			o, err := m.Register(ctx, fmt.Sprint("n", i), time.Minute)
			for n := 1; err == nil; n = n%3 + 1 {
				var claimed []store.Chunk
				if claimed, err = m.ClaimChunks(ctx, o, "b", "m", n, allHeld); len(claimed) == 0 {
					break
				}
				for _, c := range claimed {
					claims[c.Index].Add(1)
					if err = m.FinishChunks(ctx, o, c); err != nil {
						break
					}
				}
			}
			if err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
		})
	}
	running.Wait()
	for i := range claims {
		if n := claims[i].Load(); n != 1 {
			t.Errorf("chunk %d was claimed %d times", i, n)
		}
	}
	wantEqual(t, "counts", got(m.CountChunks(ctx, store.Owner{}, "b", nil))(t),
		store.ChunkCounts{Done: chunks})
}

func chunksOfEndedOwners(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	other := got(m.Register(ctx, "other", time.Hour))(t)
	for _, test := range []struct {
		name string
		free func(o store.Owner)
	}{
		{"expired", func(store.Owner) { c.advance(time.Minute) }},
		{"registered again", func(o store.Owner) { got(m.Register(ctx, o.Node, time.Minute))(t) }},
		{"unregistered", func(o store.Owner) { must(t, m.Unregister(ctx, o)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			addBatch(t, m, test.name, 1)
			o := got(m.Register(ctx, "node", time.Minute))(t)
			held := got(m.ClaimChunks(ctx, o, test.name, "m", 1, allHeld))(t)[0]
			if stolen := got(m.ClaimChunks(ctx, other, test.name, "m", 1, allHeld))(t); len(
				stolen) != 0 {
				t.Fatalf("claimed %v while the lease of its owner lasts", stolen)
			}
			c.advance(time.Minute - time.Millisecond)
			must(t, m.Renew(ctx, o, time.Minute))
			c.advance(time.Minute - time.Millisecond)
			wantEqual(t, "counts after the renewal", got(
				m.CountChunks(ctx, store.Owner{}, test.name, nil))(t), store.ChunkCounts{
				Claimed: 1})

			test.free(o)
			wantEqual(t, "counts when free", got(m.CountChunks(ctx, store.Owner{}, test.name, nil))(
				t), store.ChunkCounts{Free: 1})
			taken := got(m.ClaimChunks(ctx, other, test.name, "m", 1, allHeld))(t)
			if len(taken) != 1 || taken[0].Epoch <= held.Epoch {
				t.Fatalf("got %v, want the chunk with an epoch above %d", taken, held.Epoch)
			}
			wantErr(t, "finish by the earlier owner", m.FinishChunks(ctx, o, held), store.ErrFenced)
			wantErr(t, "release by the earlier owner", m.ReleaseChunk(ctx, o, held),
				store.ErrFenced)
			must(t, m.FinishChunks(ctx, other, taken[0]))
		})
	}

	t.Run("superseded", func(t *testing.T) {
		addBatch(t, m, "last", 1)
		o := got(m.Register(ctx, "node", time.Minute))(t)
		held := got(m.ClaimChunks(ctx, o, "last", "m", 1, allHeld))(t)[0]
		successor := got(m.Register(ctx, "node", time.Minute))(t)
		if successor.Incarnation <= o.Incarnation {
			t.Errorf("got incarnation %d after %d", successor.Incarnation, o.Incarnation)
		}
		wantErr(t, "finish", m.FinishChunks(ctx, o, held), store.ErrFenced)
		wantErr(t, "renew", m.Renew(ctx, o, time.Minute), store.ErrFenced)
		_, err := m.ClaimChunks(ctx, o, "last", "m", 1, allHeld)
		wantErr(t, "claim", err, store.ErrFenced)
		_, _, err = m.Lock(ctx, o, "l")
		wantErr(t, "lock", err, store.ErrFenced)
		must(t, m.Unregister(ctx, o)) // must not touch the successor
		must(t, m.Renew(ctx, successor, time.Minute))
		must(t, m.Unregister(ctx, successor))
		wantErr(t, "renew after unregistering", m.Renew(ctx, successor, time.Minute),
			store.ErrFenced)
	})
}

func concurrentLocks(t *testing.T, m Store, c *clock) {
	const owners = 5
	ctx := t.Context()
	var highest int64
	for round := range 4 {
		var winners atomic.Int32
		var winner store.Owner
		var running sync.WaitGroup
		for i := range owners {
			running.Go(func() {
				o, err := m.Register(ctx, fmt.Sprint("n", i), time.Minute)
				if err != nil {
					t.Errorf("register: %v", err)
					return
				}
				epoch, ok, err := m.Lock(ctx, o, "l")
				if err != nil {
					t.Errorf("lock: %v", err)
				}
				if !ok {
					return
				}
				winners.Add(1)
				if epoch <= highest {
					t.Errorf("got epoch %d after %d", epoch, highest)
				}
				winner, highest = o, epoch
			})
		}
		running.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("round %d: %d owners have the lock", round, n)
		}
		epoch, ok, err := m.Lock(ctx, winner, "l")
		if err != nil || !ok || epoch != highest {
			t.Errorf("lock again: got %d, %t, %v, want the epoch %d that the holder has", epoch, ok,
				err, highest)
		}
		switch round {
		case 0:
			must(t, m.Unlock(ctx, winner, "l"))
			must(t, m.Unlock(ctx, winner, "l"))
		case 1:
			c.advance(time.Minute)
		case 2:
			must(t, m.Unregister(ctx, winner))
		}
	}
	stranger := got(m.Register(ctx, "stranger", time.Minute))(t)
	must(t, m.Unlock(ctx, stranger, "l"))
	if _, ok, err := m.Lock(ctx, stranger, "l"); ok || err != nil {
		t.Errorf("got the lock (%t, %v) by unlocking another's", ok, err)
	}
}

func chunksNeedBatch(t *testing.T, m Store, _ *clock) {
	wantErr(t, "add chunks to a missing batch",
		m.AddChunks(t.Context(), "gone", newChunks("gone", "m", 1)), store.ErrNotFound)
}

// chunksAreClaimedAgain tests claims whose answer never reached the owner, and claims that the
// owner failed to release.
func chunksAreClaimedAgain(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 4)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	other := got(m.Register(ctx, "other", time.Minute))(t)
	first := got(m.ClaimChunks(ctx, o, "b", "m", 3, nil))(t)
	wantEqual(t, "first claim", indexes(first), []int{0, 1, 2})
	wantEqual(t, "counts with two in hand", got(m.CountChunks(ctx, o, "b", []int{0, 2}))(t),
		store.ChunkCounts{Free: 2, Claimed: 2})
	wantEqual(t, "counts as another sees them", got(m.CountChunks(ctx, other, "b", nil))(t),
		store.ChunkCounts{Free: 1, Claimed: 3})
	wantEqual(t, "another's claim", indexes(got(m.ClaimChunks(ctx, other, "b", "m", 4, nil))(t)),
		[]int{3})

	again := got(m.ClaimChunks(ctx, o, "b", "m", 4, []int{0, 2}))(t)
	wantEqual(t, "claimed again", indexes(again), []int{1})
	if again[0].Epoch <= first[1].Epoch {
		t.Errorf("got epoch %d after %d, want a higher one", again[0].Epoch, first[1].Epoch)
	}
	wantErr(t, "finish by the claim that was lost", m.FinishChunks(ctx, o, first[1]),
		store.ErrFenced)
	must(t, m.FinishChunks(ctx, o, again[0]))
	wantEqual(t, "lines left", got(m.LinesLeft(ctx))(t), map[string]map[string]int{"b": {"m": 30}})
	wantEqual(t, "a done chunk is done for all", got(m.CountChunks(ctx, o, "b", nil))(t),
		store.ChunkCounts{Free: 2, Claimed: 1, Done: 1})
}
