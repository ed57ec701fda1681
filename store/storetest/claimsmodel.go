package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/store"
)

// claimsAgreeWithModel runs the same random operations on the backend and on a slow, simple model
// of it, and compares the results.
func claimsAgreeWithModel(t *testing.T, m Store, c *clock) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		ops := &claimsRun{t: t, rt: rt, m: m, clock: c, batch: fmt.Sprintf("b%d", run), run: run,
			owners: make(map[string]*modelOwner), chunks: make([]modelClaim, rapid.IntRange(
				1, 6).Draw(rt, "chunks"))}
		addBatch(t, m, ops.batch, len(ops.chunks))
		ops.used = ops.usage()
		rt.Repeat(map[string]func(*rapid.T){
			"":           ops.compare,
			"register":   ops.register,
			"renew":      ops.renew,
			"unregister": ops.unregister,
			"wait":       ops.wait,
			"claim":      ops.claim,
			"finish":     ops.finish,
			"release":    ops.release,
			"reopen":     ops.reopen,
			"lock":       ops.lock,
			"unlock":     ops.unlock,
		})
	})
}

const modelTTL = 10 * time.Second

type modelOwner struct {
	store.Owner
	until time.Time
	ended bool // superseded or unregistered
}

// modelClaim is a chunk or a lock, which one owner holds at an epoch.
type modelClaim struct {
	epoch  int64
	holder *modelOwner
	done   bool
}

type claimsRun struct {
	t      *testing.T
	rt     *rapid.T
	m      Store
	clock  *clock
	run    int
	batch  string
	owners map[string]*modelOwner // newest by node
	known  []*modelOwner          // all that have registered
	chunks []modelClaim
	mutex  modelClaim // the lock
	claims []pastClaim
	used   int64 // requests in the ledger at the beginning
}

type pastClaim struct {
	by    *modelOwner
	chunk store.Chunk
}

func (l *claimsRun) holds(c modelClaim) bool {
	return c.holder != nil && !c.holder.ended && c.holder.until.After(l.clock.Now())
}

func (l *claimsRun) expired(o *modelOwner) bool { return !o.until.After(l.clock.Now()) }

func (l *claimsRun) anOwner(rt *rapid.T) *modelOwner {
	if len(l.known) == 0 {
		rt.Skip("no owner yet")
	}
	return l.known[rapid.IntRange(0, len(l.known)-1).Draw(rt, "owner")]
}

func (l *claimsRun) register(rt *rapid.T) {
	node := fmt.Sprintf("%d-%s", l.run, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "node"))
	if earlier := l.owners[node]; earlier != nil {
		earlier.ended = true
	}
	o := got(l.m.Register(l.t.Context(), node, modelTTL))(l.t)
	l.owners[node] = &modelOwner{Owner: o, until: l.clock.Now().Add(modelTTL)}
	l.known = append(l.known, l.owners[node])
}

// renew may succeed or fail for an owner whose lease has ended: backends may remove those.
func (l *claimsRun) renew(rt *rapid.T) {
	o := l.anOwner(rt)
	err := l.m.Renew(l.t.Context(), o.Owner, modelTTL)
	switch {
	case err == nil && !o.ended:
		o.until = l.clock.Now().Add(modelTTL)
	case errors.Is(err, store.ErrFenced) && (o.ended || l.expired(o)):
		o.ended = true
	default:
		rt.Fatalf("renew %v (ended %t): %v", o.Owner, o.ended, err)
	}
}

func (l *claimsRun) unregister(rt *rapid.T) {
	o := l.anOwner(rt)
	must(l.t, l.m.Unregister(l.t.Context(), o.Owner))
	o.ended = true
}

func (l *claimsRun) wait(rt *rapid.T) {
	l.clock.advance(time.Duration(rapid.IntRange(1, 6).Draw(rt, "seconds")) * time.Second)
}

func (l *claimsRun) claim(rt *rapid.T) {
	o, n := l.anOwner(rt), rapid.IntRange(0, 3).Draw(rt, "n")
	held := l.someIndexes(rt)
	claimed, err := l.m.ClaimChunks(l.t.Context(), o.Owner, l.batch, "m", n, held)
	if l.fenced(rt, o, err) {
		return
	}
	var want []int
	for i := range l.chunks {
		if c := &l.chunks[i]; len(want) < n && !l.expired(o) && !c.done && !l.heldFor(o, i, held) {
			want = append(want, i)
			c.holder = o
		}
	}
	if fmt.Sprint(indexes(claimed)) != fmt.Sprint(want) {
		rt.Fatalf("claimed %v, want %v", indexes(claimed), want)
	}
	for _, c := range claimed {
		if c.Epoch <= l.chunks[c.Index].epoch {
			rt.Fatalf("chunk %d: epoch %d after %d", c.Index, c.Epoch, l.chunks[c.Index].epoch)
		}
		l.chunks[c.Index].epoch = c.Epoch
		l.claims = append(l.claims, pastClaim{o, c})
	}
}

// fenced reports whether the backend refuses an owner. It must if the owner is superseded, and may
// if its lease has ended.
func (l *claimsRun) fenced(rt *rapid.T, o *modelOwner, err error) bool {
	switch {
	case errors.Is(err, store.ErrFenced) && (o.ended || l.expired(o)):
		o.ended = true
		return true
	case err != nil || o.ended:
		rt.Fatalf("owner %v (ended %t): %v", o.Owner, o.ended, err)
	}
	return false
}

func (l *claimsRun) finish(rt *rapid.T) {
	finish := func(ctx context.Context, o store.Owner, c store.Chunk) error {
		c.Tally = modelTally(c.Index)
		return l.m.FinishChunks(ctx, o, c)
	}
	l.endClaim(rt, finish, true, func(c *modelClaim) { c.done = true })
}

func (l *claimsRun) release(rt *rapid.T) {
	l.endClaim(rt, l.m.ReleaseChunk, false, func(c *modelClaim) { c.holder = nil })
}

func modelTally(chunk int) store.Tally { return store.Tally{Completed: 1 << (2 * chunk)} }

func (l *claimsRun) reopen(rt *rapid.T) {
	if len(l.claims) == 0 {
		rt.Skip("nothing claimed yet")
	}
	past := l.claims[rapid.IntRange(0, len(l.claims)-1).Draw(rt, "claim")]
	must(l.t, l.m.ReopenChunk(l.t.Context(), past.chunk))
	if c := &l.chunks[past.chunk.Index]; c.done && c.epoch == past.chunk.Epoch {
		c.done, c.holder = false, nil
	}
}

// claimEnder is FinishChunks of one chunk, or ReleaseChunk.
type claimEnder = func(ctx context.Context, o store.Owner, c store.Chunk) error

func (l *claimsRun) endClaim(rt *rapid.T, call claimEnder, evenDone bool, apply func(*modelClaim)) {
	if len(l.claims) == 0 {
		rt.Skip("nothing claimed yet")
	}
	past := l.claims[rapid.IntRange(0, len(l.claims)-1).Draw(rt, "claim")]
	c := &l.chunks[past.chunk.Index]
	newest := c.epoch == past.chunk.Epoch && c.holder == past.by && !past.by.ended &&
		(evenDone || !c.done)
	err := call(l.t.Context(), past.by.Owner, past.chunk)
	switch {
	case err == nil && newest:
		apply(c)
	case errors.Is(err, store.ErrFenced) && !newest:
	case errors.Is(err, store.ErrFenced) && l.expired(past.by):
		past.by.ended = true
	default:
		rt.Fatalf("end claim %+v (newest %t): %v", past.chunk, newest, err)
	}
}

func (l *claimsRun) lock(rt *rapid.T) {
	o := l.anOwner(rt)
	epoch, ok, err := l.m.Lock(l.t.Context(), o.Owner, l.batch)
	if l.fenced(rt, o, err) {
		return
	}
	want := !l.expired(o) && (l.mutex.holder == o || !l.holds(l.mutex))
	if ok != want {
		rt.Fatalf("lock: got %t, want %t", ok, want)
	}
	if !ok {
		return
	}
	if again := l.mutex.holder == o; epoch < l.mutex.epoch || !again && epoch == l.mutex.epoch {
		rt.Fatalf("lock: epoch %d after %d", epoch, l.mutex.epoch)
	}
	l.mutex.epoch, l.mutex.holder = epoch, o
}

func (l *claimsRun) unlock(rt *rapid.T) {
	o := l.anOwner(rt)
	must(l.t, l.m.Unlock(l.t.Context(), o.Owner, l.batch))
	if l.mutex.holder == o {
		l.mutex.holder = nil
	}
}

// someIndexes draws the chunks that an owner lists as held.
func (l *claimsRun) someIndexes(rt *rapid.T) []int {
	return rapid.SliceOfDistinct(rapid.IntRange(0, len(l.chunks)-1), rapid.ID).Draw(rt, "held")
}

// heldFor reports whether o can't claim chunk i because an owner, perhaps o itself, holds it.
func (l *claimsRun) heldFor(o *modelOwner, i int, held []int) bool {
	c := l.chunks[i]
	return l.holds(c) && (c.holder != o || slices.Contains(held, i))
}

// usage returns the number of requests in the ledger.
func (l *claimsRun) usage() (requests int64) {
	for _, u := range got(l.m.Usage(l.t.Context(), store.UsageQuery{Tenants: []string{"t"},
		Until: l.clock.Now().Add(time.Hour), Width: time.Hour}))(l.t) {
		requests += u.Requests
	}
	return requests
}

// compare checks the counts after every step.
func (l *claimsRun) compare(rt *rapid.T) {
	viewer, held := &modelOwner{}, []int(nil)
	if len(l.known) > 0 {
		viewer, held = l.anOwner(rt), l.someIndexes(rt)
	}
	var want store.ChunkCounts
	used := l.used
	for i, c := range l.chunks {
		switch {
		case c.done:
			want.Done++
			used += int64(modelTally(i).Completed)
		case l.heldFor(viewer, i, held):
			want.Claimed++
		default:
			want.Free++
		}
	}
	if n := got(l.m.CountChunks(l.t.Context(), viewer.Owner, l.batch, held))(l.t); n != want {
		rt.Fatalf("got counts %+v, want %+v", n, want)
	}
	if n := l.usage(); n != used {
		rt.Fatalf("the ledger has %d requests, want %d", n, used)
	}
}
