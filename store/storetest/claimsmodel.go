package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/store"
)

// claimsModel drives the backend and a slow, obvious model of it through the same random life and
// compares them.
func claimsModel(t *testing.T, m Store, c *clock) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		life := &claimsLife{t: t, rt: rt, m: m, clock: c, batch: fmt.Sprintf("b%d", run), run: run,
			owners: make(map[string]*modelOwner), chunks: make([]modelClaim, rapid.IntRange(
				1, 6).Draw(rt, "chunks"))}
		layOut(t, m, life.batch, len(life.chunks))
		rt.Repeat(map[string]func(*rapid.T){
			"":           life.compare,
			"register":   life.register,
			"renew":      life.renew,
			"unregister": life.unregister,
			"wait":       life.wait,
			"claim":      life.claim,
			"finish":     life.finish,
			"release":    life.release,
			"lock":       life.lock,
			"unlock":     life.unlock,
		})
	})
}

const modelTTL = 10 * time.Second

type modelOwner struct {
	store.Owner
	until time.Time
	gone  bool // superseded or unregistered
}

// modelClaim is a chunk or a lock: what one owner holds at an epoch.
type modelClaim struct {
	epoch  int64
	holder *modelOwner
	done   bool
}

type claimsLife struct {
	t      *testing.T
	rt     *rapid.T
	m      Store
	clock  *clock
	run    int
	batch  string
	owners map[string]*modelOwner // newest by node
	known  []*modelOwner          // all that ever were
	chunks []modelClaim
	theOne modelClaim // the lock
	claims []pastClaim
}

type pastClaim struct {
	by    *modelOwner
	chunk store.Chunk
}

func (l *claimsLife) holds(c modelClaim) bool {
	return c.holder != nil && !c.holder.gone && c.holder.until.After(l.clock.Now())
}

func (l *claimsLife) lapsed(o *modelOwner) bool { return !o.until.After(l.clock.Now()) }

func (l *claimsLife) anOwner(rt *rapid.T) *modelOwner {
	if len(l.known) == 0 {
		rt.Skip("no owner yet")
	}
	return l.known[rapid.IntRange(0, len(l.known)-1).Draw(rt, "owner")]
}

func (l *claimsLife) register(rt *rapid.T) {
	node := fmt.Sprintf("%d-%s", l.run, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "node"))
	if earlier := l.owners[node]; earlier != nil {
		earlier.gone = true
	}
	o := got(l.m.Register(l.t.Context(), node, modelTTL))(l.t)
	l.owners[node] = &modelOwner{Owner: o, until: l.clock.Now().Add(modelTTL)}
	l.known = append(l.known, l.owners[node])
}

// renew may or may not bring a lapsed owner back; the contract lets backends forget those.
func (l *claimsLife) renew(rt *rapid.T) {
	o := l.anOwner(rt)
	err := l.m.Renew(l.t.Context(), o.Owner, modelTTL)
	switch {
	case err == nil && !o.gone:
		o.until = l.clock.Now().Add(modelTTL)
	case errors.Is(err, store.ErrFenced) && (o.gone || l.lapsed(o)):
		o.gone = true
	default:
		rt.Fatalf("renew %v (gone %t): %v", o.Owner, o.gone, err)
	}
}

func (l *claimsLife) unregister(rt *rapid.T) {
	o := l.anOwner(rt)
	must(l.t, l.m.Unregister(l.t.Context(), o.Owner))
	o.gone = true
}

func (l *claimsLife) wait(rt *rapid.T) {
	l.clock.advance(time.Duration(rapid.IntRange(1, 6).Draw(rt, "seconds")) * time.Second)
}

func (l *claimsLife) claim(rt *rapid.T) {
	o, n := l.anOwner(rt), rapid.IntRange(0, 3).Draw(rt, "n")
	inHand := l.someIndexes(rt)
	claimed, err := l.m.ClaimChunks(l.t.Context(), o.Owner, l.batch, "m", n, inHand)
	if l.barred(rt, o, err) {
		return
	}
	var want []int
	for i := range l.chunks {
		if c := &l.chunks[i]; len(want) < n && !l.lapsed(o) && !c.done && !l.heldFor(o, i, inHand) {
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

// barred tells of an owner that the backend refuses, as it must when it is gone and may when its
// lease has run out.
func (l *claimsLife) barred(rt *rapid.T, o *modelOwner, err error) bool {
	switch {
	case errors.Is(err, store.ErrFenced) && (o.gone || l.lapsed(o)):
		o.gone = true
		return true
	case err != nil || o.gone:
		rt.Fatalf("owner %v (gone %t): %v", o.Owner, o.gone, err)
	}
	return false
}

func (l *claimsLife) finish(rt *rapid.T) {
	l.settle(rt, l.m.FinishChunk, true, func(c *modelClaim) { c.done = true })
}

func (l *claimsLife) release(rt *rapid.T) {
	l.settle(rt, l.m.ReleaseChunk, false, func(c *modelClaim) { c.holder = nil })
}

func (l *claimsLife) settle(rt *rapid.T, call settler, evenDone bool, apply func(*modelClaim)) {
	if len(l.claims) == 0 {
		rt.Skip("nothing claimed yet")
	}
	past := l.claims[rapid.IntRange(0, len(l.claims)-1).Draw(rt, "claim")]
	c := &l.chunks[past.chunk.Index]
	newest := c.epoch == past.chunk.Epoch && c.holder == past.by && !past.by.gone &&
		(evenDone || !c.done)
	err := call(l.t.Context(), past.by.Owner, past.chunk)
	switch {
	case err == nil && newest:
		apply(c)
	case errors.Is(err, store.ErrFenced) && !newest:
	case errors.Is(err, store.ErrFenced) && l.lapsed(past.by):
		past.by.gone = true
	default:
		rt.Fatalf("settle %+v (newest %t): %v", past.chunk, newest, err)
	}
}

func (l *claimsLife) lock(rt *rapid.T) {
	o := l.anOwner(rt)
	epoch, ok, err := l.m.Lock(l.t.Context(), o.Owner, l.batch)
	if l.barred(rt, o, err) {
		return
	}
	want := !l.lapsed(o) && (l.theOne.holder == o || !l.holds(l.theOne))
	if ok != want {
		rt.Fatalf("lock: got %t, want %t", ok, want)
	}
	if !ok {
		return
	}
	if again := l.theOne.holder == o; epoch < l.theOne.epoch || !again && epoch == l.theOne.epoch {
		rt.Fatalf("lock: epoch %d after %d", epoch, l.theOne.epoch)
	}
	l.theOne.epoch, l.theOne.holder = epoch, o
}

func (l *claimsLife) unlock(rt *rapid.T) {
	o := l.anOwner(rt)
	must(l.t, l.m.Unlock(l.t.Context(), o.Owner, l.batch))
	if l.theOne.holder == o {
		l.theOne.holder = nil
	}
}

// someIndexes draws which chunks an owner says that it works on.
func (l *claimsLife) someIndexes(rt *rapid.T) []int {
	return rapid.SliceOfDistinct(rapid.IntRange(0, len(l.chunks)-1), rapid.ID).Draw(rt, "in hand")
}

// heldFor reports whether o can't claim chunk i because somebody, perhaps o itself, works on it.
func (l *claimsLife) heldFor(o *modelOwner, i int, inHand []int) bool {
	c := l.chunks[i]
	return l.holds(c) && (c.holder != o || slices.Contains(inHand, i))
}

// compare checks the counts after every step.
func (l *claimsLife) compare(rt *rapid.T) {
	viewer, inHand := &modelOwner{}, []int(nil)
	if len(l.known) > 0 {
		viewer, inHand = l.anOwner(rt), l.someIndexes(rt)
	}
	var want store.ChunkCounts
	for i, c := range l.chunks {
		switch {
		case c.done:
			want.Done++
		case l.heldFor(viewer, i, inHand):
			want.Claimed++
		default:
			want.Free++
		}
	}
	if n := got(l.m.CountChunks(l.t.Context(), viewer.Owner, l.batch, inHand))(l.t); n != want {
		rt.Fatalf("got counts %+v, want %+v", n, want)
	}
}
