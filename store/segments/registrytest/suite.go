package registrytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/segments"
)

// Test runs the suite. open returns two views of one new, empty registry, as two processes have
// them. advance moves the server's clock ahead; a registry whose clock is real waits so long. It is
// called with milliseconds.
func Test(t *testing.T, open func(t *testing.T) (here, there segments.Registry,
	advance func(time.Duration))) {
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"processes have different numbers", testEnroll},
		{"the server's time does not go back", testNow},
		{"segments are appended to journals", testRegister},
		{"lower epochs are left out", testEpochs},
		{"removed chunks are left out", testRemovedChunks},
		{"fences are refused below the epoch", testFence},
		{"several chunks are fenced together", testFenceSeveral},
		{"keys are registered once", testExists},
		{"batches are listed and removed", testRemove},
		{"segments are queued with their last range", testQueue},
		{"segments are replaced", testReplace},
		{"replacements leave out what has changed", testReplaceChanged},
		{"replacements of partly removed segments", testReplaceRemoved},
		{"replacements keep the order of other ranges", testReplaceBetween},
		{"swept keys are refused", testSweep},
		{"the boundary does not go back", testBoundary},
		{"unknown keys are found", testUnknown},
		{"deletions wait for the boundary and their time", testDeletions},
		{"deletions are listed in the order of queueing", testDeletionOrder},
		{"ended contexts change nothing", testContext},
		{"registrations of many processes do not mix", testConcurrent},
		{"a fence is a line between two writers", testFenceRace},
		{"the boundary is a line between two registrations", testSweepRace},
		{"replacements and removals race", testReplaceRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, there, advance := open(t)
			test.run(&fixture{T: t, here: here, there: there, advance: advance})
		})
	}
}

// fixture is one test with its registry.
type fixture struct {
	*testing.T
	here, there segments.Registry
	advance     func(time.Duration)
	count       int64
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantErr(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// now returns the server's time.
func (f *fixture) now() segments.Stamp {
	f.Helper()
	now, err := f.here.Now(f.Context())
	f.must(err)
	return now
}

// key returns a new key with the server's time.
func (f *fixture) key() segments.Key {
	f.Helper()
	f.count++
	return segments.Key{Stamp: f.now(), Process: 1, Count: f.count}
}

func chunkOf(batch string, index int) store.ChunkID {
	return store.ChunkID{Batch: batch, Index: index}
}

func part(chunk store.ChunkID, epoch, offset, length int64) segments.Part {
	return segments.Part{Chunk: chunk, Epoch: epoch, Offset: offset, Length: length}
}

func (f *fixture) fence(r segments.Registry, chunk store.ChunkID, epoch int64) []segments.Range {
	f.Helper()
	ranges, err := r.Fence(f.Context(), segments.Fence{Chunk: chunk, Epoch: epoch})
	f.must(err)
	return ranges
}

// register registers a segment under a new key.
func (f *fixture) register(parts ...segments.Part) (segments.Key, segments.Registered) {
	f.Helper()
	s := segments.Segment{Key: f.key(), Parts: parts}
	for _, p := range parts {
		s.Bytes = max(s.Bytes, p.Offset+p.Length)
	}
	done, err := f.here.Register(f.Context(), s)
	f.must(err)
	return s.Key, done
}

func (f *fixture) ranges(chunk store.ChunkID) []segments.Range {
	f.Helper()
	ranges, err := f.there.Ranges(f.Context(), chunk)
	f.must(err)
	return ranges
}

func (f *fixture) wantRanges(what string, chunk store.ChunkID, want ...segments.Range) {
	f.Helper()
	if got := f.ranges(chunk); len(got)+len(want) > 0 {
		f.equal(what, got, want)
	}
}

// unknown returns which of the keys the registry does not know.
func (f *fixture) unknown(keys ...segments.Key) []segments.Key {
	f.Helper()
	unknown, err := f.there.Unknown(f.Context(), keys)
	f.must(err)
	slices.SortFunc(unknown, segments.Key.Compare)
	return unknown
}

// deletions advances the boundary over all keys so far, and returns what may be deleted.
func (f *fixture) deletions() []segments.Key {
	f.Helper()
	f.advance(2 * time.Millisecond)
	_, err := f.here.AdvanceSweep(f.Context(), 0)
	f.must(err)
	due, err := f.there.TakeDeletions(f.Context(), 0, 1000)
	f.must(err)
	f.advance(2 * time.Millisecond) // the keys of later segments are above the boundary
	return due
}

func (f *fixture) wantDeletions(what string, want ...segments.Key) {
	f.Helper()
	got := f.deletions()
	slices.SortFunc(got, segments.Key.Compare)
	slices.SortFunc(want, segments.Key.Compare)
	if len(got)+len(want) > 0 {
		f.equal(what, got, want)
	}
}

func testEnroll(f *fixture) {
	var mu sync.Mutex
	seen := map[int64]bool{}
	var running sync.WaitGroup
	for _, r := range []segments.Registry{f.here, f.there} {
		running.Go(func() {
			for range 20 {
				process, now, err := r.Enroll(f.Context())
				mu.Lock()
				if err != nil || process < 1 || seen[process] || now <= 0 {
					f.Errorf("got process %d at %d, %v, want a new positive number", process, now,
						err)
				}
				seen[process] = true
				mu.Unlock()
			}
		})
	}
	running.Wait()
}

func testNow(f *fixture) {
	before := f.now()
	f.advance(3 * time.Millisecond)
	if after := f.now(); after < before.Add(3*time.Millisecond) {
		f.Errorf("got %d, 3 ms after %d", after, before)
	}
}

func testRegister(f *fixture) {
	a, b := chunkOf("batch_1", 0), chunkOf("batch_1", 1)
	f.wantRanges("unknown chunk", a)
	for _, c := range []store.ChunkID{a, b} {
		if ranges := f.fence(f.here, c, 1); len(ranges) > 0 {
			f.Errorf("fenced a new chunk: got ranges %v", ranges)
		}
	}
	k1, done := f.register(part(a, 1, 0, 10), part(b, 1, 10, 5))
	a1 := segments.Range{Chunk: a, Key: k1, Offset: 0, Length: 10, At: 0}
	b1 := segments.Range{Chunk: b, Key: k1, Offset: 10, Length: 5, At: 0}
	f.equal("registered", done.Ranges, []segments.Range{a1, b1})
	if done.Now < k1.Stamp || len(done.Fenced) > 0 {
		f.Errorf("got time %d and %v fenced, want a time from %d on and none", done.Now,
			done.Fenced, k1.Stamp)
	}
	k2, done := f.register(part(b, 1, 0, 3), part(a, 1, 3, 1<<32))
	b2 := segments.Range{Chunk: b, Key: k2, Offset: 0, Length: 3, At: 5}
	a2 := segments.Range{Chunk: a, Key: k2, Offset: 3, Length: 1 << 32, At: 10}
	f.equal("registered next", done.Ranges, []segments.Range{b2, a2})
	f.wantRanges("journal a", a, a1, a2)
	f.wantRanges("journal b", b, b1, b2)
	f.equal("ranges of the next owner", f.fence(f.there, a, 2), []segments.Range{a1, a2})
}

func testEpochs(f *fixture) {
	a, b := chunkOf("batch_1", 0), chunkOf("batch_1", 1)
	f.fence(f.here, a, 1)
	f.fence(f.here, b, 1)
	f.fence(f.there, a, 2)
	k, done := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
	f.equal("fenced", done.Fenced, []store.ChunkID{a})
	f.wantRanges("journal of the fenced chunk", a)
	f.wantRanges("journal of the other chunk", b,
		segments.Range{Chunk: b, Key: k, Offset: 4, Length: 4})
	for _, epoch := range []int64{1, 3} { // 3: the chunk was never fenced at it
		k, done = f.register(part(a, epoch, 0, 4))
		f.equal("fenced alone", done.Fenced, []store.ChunkID{a})
		if len(done.Ranges) > 0 {
			f.Errorf("registered %v at epoch %d", done.Ranges, epoch)
		}
		f.equal("unknown, since no part counts", f.unknown(k), []segments.Key{k})
	}
	if _, done = f.register(part(a, 2, 0, 4)); len(done.Ranges) != 1 || len(done.Fenced) > 0 {
		f.Errorf("the newest owner: got %+v, want its range", done)
	}
}

func testRemovedChunks(f *fixture) {
	a := chunkOf("batch_1", 0)
	k, done := f.register(part(a, 1, 0, 4))
	f.equal("fenced in an unknown chunk", done.Fenced, []store.ChunkID{a})
	f.fence(f.here, a, 1)
	f.must(f.there.Remove(f.Context(), "batch_1"))
	k2, done := f.register(part(a, 1, 0, 4))
	f.equal("fenced in a removed chunk", done.Fenced, []store.ChunkID{a})
	f.equal("unknown", f.unknown(k, k2), []segments.Key{k, k2})
	batches, err := f.here.Batches(f.Context())
	f.must(err)
	if len(batches) > 0 {
		f.Errorf("got batches %v, want none", batches)
	}
}

func testFenceSeveral(f *fixture) {
	a, b, c := chunkOf("batch_1", 0), chunkOf("batch_1", 1), chunkOf("batch_2", 0)
	f.fence(f.here, b, 5)
	f.register(part(b, 5, 0, 4))
	f.register(part(b, 5, 0, 6))
	_, err := f.there.Fence(f.Context(), segments.Fence{Chunk: a, Epoch: 7},
		segments.Fence{Chunk: b, Epoch: 4}, segments.Fence{Chunk: c, Epoch: 7})
	f.wantErr("one at a lower epoch", err, store.ErrFenced)
	f.fence(f.there, a, 1) // the others have not changed
	f.register(part(a, 1, 0, 2))

	ranges, err := f.there.Fence(f.Context(), segments.Fence{Chunk: c, Epoch: 2},
		segments.Fence{Chunk: b, Epoch: 6}, segments.Fence{Chunk: a, Epoch: 2})
	f.must(err)
	f.equal("chunks", chunksOf(ranges), []store.ChunkID{b, b, a})
	f.equal("place", ranges[1].At, int64(4))
	again, err := f.here.Ranges(f.Context(), c, b, a)
	f.must(err)
	f.equal("ranges", again, ranges)
	none, err := f.here.Ranges(f.Context())
	f.must(err)
	f.equal("ranges of no chunk", len(none), 0)
	if _, done := f.register(part(b, 5, 0, 4), part(b, 6, 4, 4)); len(done.Ranges) != 1 {
		f.Errorf("registered %v, want the part of the new epoch", done.Ranges)
	}
}

func chunksOf(ranges []segments.Range) (chunks []store.ChunkID) {
	for _, r := range ranges {
		chunks = append(chunks, r.Chunk)
	}
	return chunks
}

func testFence(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 5)
	f.fence(f.there, a, 5)
	_, done := f.register(part(a, 5, 0, 4))
	_, err := f.there.Fence(f.Context(), segments.Fence{Chunk: a, Epoch: 4})
	f.wantErr("fence at a lower epoch", err, store.ErrFenced)
	f.equal("ranges at the same epoch", f.fence(f.there, a, 5), done.Ranges)
	if _, done := f.register(part(a, 5, 0, 4)); len(done.Fenced) > 0 {
		f.Error("a refused fence has changed the epoch")
	}
}

func testExists(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	k, _ := f.register(part(a, 1, 0, 4))
	again := segments.Segment{Key: k, Bytes: 4, Parts: []segments.Part{part(a, 1, 0, 4)}}
	for _, r := range []segments.Registry{f.here, f.there} {
		_, err := r.Register(f.Context(), again)
		f.wantErr("register a registered key", err, store.ErrExists)
	}
	if n := len(f.ranges(a)); n != 1 {
		f.Errorf("got %d ranges, want 1", n)
	}
	_, err := f.here.Replace(f.Context(), segments.Replacement{Key: k, Bytes: 4,
		Old: []segments.Key{k}, Ranges: []segments.Range{{Chunk: a, Key: k, Length: 4}}})
	f.wantErr("replace by a registered key", err, store.ErrExists)
	f.must(f.here.Remove(f.Context(), "batch_1"))
	f.fence(f.here, a, 1)
	_, err = f.here.Register(f.Context(), again)
	f.wantErr("register a queued key", err, store.ErrExists)
}

func testRemove(f *fixture) {
	f.must(f.here.Remove(f.Context(), "batch_1")) // nothing
	for _, c := range []store.ChunkID{chunkOf("batch_1", 0), chunkOf("batch_1", 7),
		chunkOf("batch_2", 0)} {
		f.fence(f.here, c, 1)
		f.register(part(c, 1, 0, 4))
	}
	batches := func() []string {
		list, err := f.there.Batches(f.Context())
		f.must(err)
		slices.Sort(list)
		return list
	}
	f.equal("batches", batches(), []string{"batch_1", "batch_2"})
	f.must(f.there.Remove(f.Context(), "batch_1"))
	f.equal("batches after the removal", batches(), []string{"batch_2"})
	f.wantRanges("removed journal", chunkOf("batch_1", 7))
	if ranges := f.fence(f.here, chunkOf("batch_1", 0), 1); len(ranges) > 0 {
		f.Errorf("a removed chunk that is fenced again has ranges %v", ranges)
	}
}

func testQueue(f *fixture) {
	a, b := chunkOf("batch_1", 0), chunkOf("batch_2", 0)
	f.fence(f.here, a, 1)
	f.fence(f.here, b, 1)
	both, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
	one, _ := f.register(part(a, 1, 0, 4))
	f.wantDeletions("queued at first")
	f.must(f.here.Remove(f.Context(), "batch_1"))
	f.wantDeletions("queued after the removal of one batch", one)
	f.must(f.here.Remove(f.Context(), "batch_2"))
	f.wantDeletions("queued after the removal of both", one, both)
}

// hasGap reports whether the ranges of a journal leave a position out, or have one twice.
func hasGap(ranges []segments.Range) bool {
	at := int64(0)
	for _, r := range ranges {
		if r.At != at {
			return true
		}
		at = r.End()
	}
	return false
}

func testReplace(f *fixture) {
	a, b, other := chunkOf("batch_1", 0), chunkOf("batch_1", 1), chunkOf("batch_2", 0)
	for _, c := range []store.ChunkID{a, b, other} {
		f.fence(f.here, c, 1)
	}
	k1, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 2))
	k2, _ := f.register(part(a, 1, 0, 3))
	k3, last := f.register(part(a, 1, 0, 5), part(other, 1, 5, 5))
	f.fence(f.there, b, 2) // replacements do not check epochs
	k := f.key()
	a12 := segments.Range{Chunk: a, Key: k, Offset: 2, Length: 7, At: 0}
	b1 := segments.Range{Chunk: b, Key: k, Offset: 0, Length: 2, At: 0}
	done, err := f.here.Replace(f.Context(), segments.Replacement{Key: k, Bytes: 9,
		Old: []segments.Key{k1, k2}, Ranges: []segments.Range{b1, a12}})
	f.must(err)
	f.equal("replaced", done, []segments.Range{b1, a12})
	f.wantRanges("journal a", a, a12, last.Ranges[0])
	f.wantRanges("journal b", b, b1)
	f.wantRanges("other journal", other, last.Ranges[1])
	f.wantDeletions("queued", k1, k2)
	if unknown := f.unknown(k, k1, k2, k3); len(unknown) > 0 {
		f.Errorf("unknown after the replacement: %v", unknown)
	}
	k4, appended := f.register(part(a, 1, 1, 1))
	f.equal("appended after the replacement", appended.Ranges,
		[]segments.Range{{Chunk: a, Key: k4, Offset: 1, Length: 1, At: 12}})
	f.must(f.here.Remove(f.Context(), "batch_1"))
	f.wantDeletions("queued at the end", k1, k2, k, k4)
}

func testReplaceChanged(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	k1, _ := f.register(part(a, 1, 0, 4))
	k2, _ := f.register(part(a, 1, 0, 4))
	k3, _ := f.register(part(a, 1, 0, 4))
	want := f.ranges(a)
	for what, r := range map[string]segments.Replacement{
		"another length": {Old: []segments.Key{k1, k2},
			Ranges: []segments.Range{{Chunk: a, Length: 9}}},
		"half a range": {Old: []segments.Key{k1, k2},
			Ranges: []segments.Range{{Chunk: a, Length: 6}}},
		"a range of another segment": {Old: []segments.Key{k1, k3},
			Ranges: []segments.Range{{Chunk: a, Length: 12}}},
		"nothing at that place": {Old: []segments.Key{k3},
			Ranges: []segments.Range{{Chunk: a, At: 12, Length: 4}}},
		"another chunk": {Old: []segments.Key{k1},
			Ranges: []segments.Range{{Chunk: chunkOf("batch_1", 1), Length: 4}}},
		"another place": {Old: []segments.Key{k1},
			Ranges: []segments.Range{{Chunk: a, At: 2, Length: 4}}},
	} {
		r.Key, r.Bytes = f.key(), 12
		for i := range r.Ranges {
			r.Ranges[i].Key = r.Key
		}
		done, err := f.here.Replace(f.Context(), r)
		f.must(err)
		if len(done) > 0 {
			f.Errorf("%s: replaced %v", what, done)
		}
		f.equal(what+": unknown, since no range counts", f.unknown(r.Key),
			[]segments.Key{r.Key})
	}
	f.wantRanges("journal", a, want...)
	f.wantDeletions("queued")
}

func testReplaceRemoved(f *fixture) {
	a, b := chunkOf("batch_1", 0), chunkOf("batch_2", 0)
	f.fence(f.here, a, 1)
	f.fence(f.here, b, 1)
	k1, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
	k2, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
	f.must(f.there.Remove(f.Context(), "batch_1"))
	// The chunk is there again, with other bytes of the same length.
	f.fence(f.there, a, 1)
	k3, fresh := f.register(part(a, 1, 0, 8))
	k := f.key()
	done, err := f.here.Replace(f.Context(), segments.Replacement{Key: k, Bytes: 16,
		Old: []segments.Key{k1, k2}, Ranges: []segments.Range{
			{Chunk: a, Key: k, Offset: 0, Length: 8}, {Chunk: b, Key: k, Offset: 8, Length: 8}}})
	f.must(err)
	f.equal("replaced", done, []segments.Range{{Chunk: b, Key: k, Offset: 8, Length: 8}})
	f.wantRanges("the chunk that was removed", a, fresh.Ranges...)
	f.wantDeletions("queued", k1, k2)
	f.must(f.here.Remove(f.Context(), "batch_2"))
	f.wantDeletions("queued after the removal", k1, k2, k)
	f.equal("known", len(f.unknown(k3)), 0)
}

func testReplaceBetween(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	var keys []segments.Key
	for range 5 {
		k, _ := f.register(part(a, 1, 0, 2))
		keys = append(keys, k)
	}
	before := f.ranges(a)
	k := f.key() // two runs of one chunk in one segment, with another range between them
	done, err := f.here.Replace(f.Context(), segments.Replacement{Key: k, Bytes: 8,
		Old: []segments.Key{keys[0], keys[1], keys[3], keys[4]}, Ranges: []segments.Range{
			{Chunk: a, Key: k, Offset: 0, Length: 4, At: 0},
			{Chunk: a, Key: k, Offset: 4, Length: 4, At: 6}}})
	f.must(err)
	f.equal("replaced", len(done), 2)
	f.wantRanges("journal", a, done[0], before[2], done[1])
	if hasGap(f.ranges(a)) {
		f.Error("the journal has a gap")
	}
	f.wantDeletions("queued", keys[0], keys[1], keys[3], keys[4])
}

func testSweep(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	early, later := f.key(), f.key()
	k1, _ := f.register(part(a, 1, 0, 4))
	f.advance(2 * time.Millisecond)
	through, err := f.there.AdvanceSweep(f.Context(), 0)
	f.must(err)
	if through <= k1.Stamp {
		f.Fatalf("got boundary %d, want one above %d", through, k1.Stamp)
	}
	_, err = f.here.Register(f.Context(), segments.Segment{Key: early, Bytes: 4,
		Parts: []segments.Part{part(a, 1, 0, 4)}})
	f.wantErr("register below the boundary", err, segments.ErrSwept)
	_, err = f.here.Replace(f.Context(), segments.Replacement{Key: later, Bytes: 4,
		Old: []segments.Key{k1}, Ranges: []segments.Range{{Chunk: a, Key: later, Length: 4}}})
	f.wantErr("replace below the boundary", err, segments.ErrSwept)
	at := segments.Key{Stamp: through, Process: 1, Count: 1000}
	_, err = f.here.Register(f.Context(), segments.Segment{Key: at, Bytes: 4,
		Parts: []segments.Part{part(a, 1, 0, 4)}})
	f.wantErr("register at the boundary", err, segments.ErrSwept)
	if n := len(f.ranges(a)); n != 1 {
		f.Errorf("got %d ranges, want 1", n)
	}
	at.Stamp++
	_, err = f.here.Register(f.Context(), segments.Segment{Key: at, Bytes: 4,
		Parts: []segments.Part{part(a, 1, 0, 4)}})
	f.wantErr("register above the boundary", err, nil)
}

func testBoundary(f *fixture) {
	through, err := f.here.AdvanceSweep(f.Context(), time.Hour)
	f.must(err)
	if limit := f.now().Add(-time.Hour); through > limit {
		f.Errorf("got boundary %d, want at most %d", through, limit)
	}
	higher, err := f.there.AdvanceSweep(f.Context(), 0)
	f.must(err)
	if higher < through.Add(30*time.Minute) {
		f.Errorf("got boundary %d, want one near %d", higher, f.now())
	}
	same, err := f.here.AdvanceSweep(f.Context(), time.Hour)
	f.must(err)
	f.equal("boundary after a call with a higher age", same, higher)
}

func testUnknown(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	k1, _ := f.register(part(a, 1, 0, 4))
	never := f.key()
	k2, _ := f.register(part(a, 1, 0, 4))
	f.equal("unknown", f.unknown(k1, never, k2), []segments.Key{never})
	f.must(f.here.Remove(f.Context(), "batch_1"))
	f.equal("unknown while queued", f.unknown(k1, never, k2), []segments.Key{never})
	f.equal("unknown of none", len(f.unknown()), 0)
	f.must(f.here.FinishDeletions(f.Context(), f.deletions()))
	f.equal("unknown when deleted", f.unknown(k1, never, k2), []segments.Key{k1, never, k2})
}

func testDeletions(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	k, _ := f.register(part(a, 1, 0, 4))
	f.must(f.here.Remove(f.Context(), "batch_1"))
	take := func(wait time.Duration, limit int) []segments.Key {
		due, err := f.there.TakeDeletions(f.Context(), wait, limit)
		f.must(err)
		return due
	}
	f.advance(5 * time.Millisecond)
	f.equal("due above the boundary", len(take(0, 10)), 0)
	f.must(f.there.FinishDeletions(f.Context(), []segments.Key{k})) // is ignored
	_, err := f.here.AdvanceSweep(f.Context(), 0)
	f.must(err)
	f.equal("due before its time", len(take(time.Hour, 10)), 0)
	f.equal("due under a limit of 0", len(take(0, 0)), 0)
	for range 2 {
		f.equal("due", take(2*time.Millisecond, 10), []segments.Key{k})
	}
	f.must(f.here.FinishDeletions(f.Context(), []segments.Key{k, f.key()}))
	f.must(f.there.FinishDeletions(f.Context(), []segments.Key{k}))
	f.equal("due when finished", len(take(0, 10)), 0)
	_, err = f.here.Register(f.Context(), segments.Segment{Key: k, Bytes: 4,
		Parts: []segments.Part{part(a, 1, 0, 4)}})
	f.wantErr("register a deleted key", err, segments.ErrSwept)
}

func testDeletionOrder(f *fixture) {
	var want []segments.Key
	for i := range 5 {
		batch := fmt.Sprintf("batch_%d", i)
		f.fence(f.here, chunkOf(batch, 0), 1)
		k, _ := f.register(part(chunkOf(batch, 0), 1, 0, 4))
		want = append(want, k)
	}
	slices.Reverse(want)
	for i := 4; i >= 0; i-- {
		f.must(f.here.Remove(f.Context(), fmt.Sprintf("batch_%d", i)))
		f.advance(2 * time.Millisecond)
	}
	f.equal("due", f.deletions(), want)
	due, err := f.here.TakeDeletions(f.Context(), 0, 2)
	f.must(err)
	f.equal("due under a limit", due, want[:2])
}

func testContext(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	ended, cancel := context.WithCancel(f.Context())
	cancel()
	_, err := f.here.Fence(ended, segments.Fence{Chunk: a, Epoch: 2})
	f.wantErr("fence", err, context.Canceled)
	_, err = f.here.Register(ended, segments.Segment{Key: f.key(), Bytes: 4,
		Parts: []segments.Part{part(a, 1, 0, 4)}})
	f.wantErr("register", err, context.Canceled)
	f.wantErr("remove", f.here.Remove(ended, "batch_1"), context.Canceled)
	_, err = f.here.AdvanceSweep(ended, 0)
	f.wantErr("advance", err, context.Canceled)
	_, err = f.here.Ranges(ended, a)
	f.wantErr("ranges", err, context.Canceled)
	k, done := f.register(part(a, 1, 0, 4))
	f.equal("registered", len(done.Ranges), 1)
	f.equal("unknown", len(f.unknown(k)), 0)
}

// testConcurrent has processes register segments with the same chunks in different orders: no
// deadlock, no lost range, no gap.
func testConcurrent(f *fixture) {
	const processes, each = 4, 15
	chunks := []store.ChunkID{chunkOf("batch_1", 0), chunkOf("batch_1", 1), chunkOf("batch_2", 0),
		chunkOf("batch_3", 5)}
	for _, c := range chunks {
		f.fence(f.here, c, 1)
	}
	now := f.now()
	var running sync.WaitGroup
	for p := range processes {
		running.Go(func() {
			r := []segments.Registry{f.here, f.there}[p%2]
			for n := range each {
				s := segments.Segment{Bytes: 40,
					Key: segments.Key{Stamp: now, Process: int64(p + 2), Count: int64(n)}}
				for i := range chunks {
					c := chunks[(i*(1+2*(p%2))+p)%len(chunks)]
					s.Parts = append(s.Parts, part(c, 1, int64(10*i), 10))
				}
				done, err := r.Register(f.Context(), s)
				if err != nil || len(done.Ranges) != len(chunks) {
					f.Errorf("process %d: got %+v, %v", p, done, err)
				}
			}
		})
	}
	running.Wait()
	for _, c := range chunks {
		ranges := f.ranges(c)
		if gap := hasGap(ranges); gap || len(ranges) != processes*each {
			f.Errorf("chunk %v: got %d ranges, gap: %t, want %d", c, len(ranges), gap,
				processes*each)
		}
		last := map[int64]int64{}
		for _, r := range ranges {
			if before, ok := last[r.Key.Process]; ok && r.Key.Count <= before {
				f.Errorf("chunk %v: segment %d of process %d is after %d", c, r.Key.Count,
					r.Key.Process, before)
			}
			last[r.Key.Process] = r.Key.Count
		}
	}
}

// testFenceRace has a writer register while the next owner fences: the fence returns all ranges
// that were registered, and none is registered later.
func testFenceRace(f *fixture) {
	a := chunkOf("batch_1", 0)
	for round := range int64(10) {
		epoch := 2*round + 1
		f.fence(f.here, a, epoch)
		started := make(chan struct{})
		var registered int
		var running sync.WaitGroup
		now := f.now()
		running.Go(func() {
			for n := int64(0); ; n++ {
				done, err := f.here.Register(f.Context(), segments.Segment{Bytes: 4,
					Key:   segments.Key{Stamp: now, Process: 100 + round, Count: n},
					Parts: []segments.Part{part(a, epoch, 0, 4)}})
				if err != nil {
					f.Errorf("register: %v", err)
				}
				if n == 2 || err != nil {
					close(started)
				}
				if err != nil || len(done.Fenced) > 0 {
					return
				}
				registered++
			}
		})
		before := len(f.ranges(a))
		<-started
		seen := f.fence(f.there, a, epoch+1)
		running.Wait()
		ours := 0
		for _, r := range seen {
			if r.Key.Process == 100+round {
				ours++
			}
		}
		if ours != registered || len(f.ranges(a)) != len(seen) {
			f.Fatalf("round %d: the fence saw %d ranges of this round, %d were registered; %d in "+
				"the journal before, %d at the fence, %d now", round, ours, registered, before,
				len(seen), len(f.ranges(a)))
		}
	}
}

// testSweepRace has writers register while the boundary advances over their keys. Each registration
// is either seen by Unknown afterwards, or was refused.
func testSweepRace(f *fixture) {
	a := chunkOf("batch_1", 0)
	f.fence(f.here, a, 1)
	const writers = 4
	for round := range int64(10) {
		var mu sync.Mutex
		var all []segments.Key
		accepted := map[segments.Key]bool{}
		var running sync.WaitGroup
		now := f.now()
		for w := range int64(writers) {
			running.Go(func() {
				for n := range int64(3) {
					key := segments.Key{Stamp: now, Process: 1000*(round+1) + w, Count: n}
					mu.Lock()
					all = append(all, key)
					mu.Unlock()
					_, err := f.here.Register(f.Context(), segments.Segment{Key: key, Bytes: 4,
						Parts: []segments.Part{part(a, 1, 0, 4)}})
					if err != nil && !errors.Is(err, segments.ErrSwept) {
						f.Errorf("register: %v", err)
					}
					mu.Lock()
					accepted[key] = err == nil
					mu.Unlock()
				}
			})
		}
		f.advance(2 * time.Millisecond)
		through, err := f.there.AdvanceSweep(f.Context(), 0)
		f.must(err)
		if through < now {
			f.Fatalf("the boundary %d is below %d", through, now)
		}
		mu.Lock()
		listed := slices.Clone(all)
		mu.Unlock()
		unknown := f.unknown(listed...) // what a sweep would delete
		running.Wait()
		for _, key := range unknown {
			if accepted[key] {
				f.Errorf("round %d: %v was accepted after the boundary had passed it", round, key)
			}
		}
	}
}

// testReplaceRace replaces the segments of two batches while one of them is removed.
func testReplaceRace(f *fixture) {
	for round := range 10 {
		gone, stays := fmt.Sprintf("batch_%d", 2*round), fmt.Sprintf("batch_%d", 2*round+1)
		a, b := chunkOf(gone, 0), chunkOf(stays, 0)
		f.fence(f.here, a, 1)
		f.fence(f.here, b, 1)
		k1, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
		k2, _ := f.register(part(a, 1, 0, 4), part(b, 1, 4, 4))
		var done [2][]segments.Range
		var running sync.WaitGroup
		for i, r := range []segments.Registry{f.here, f.there} {
			k := f.key()
			running.Go(func() {
				var err error
				done[i], err = r.Replace(f.Context(), segments.Replacement{Key: k, Bytes: 16,
					Old: []segments.Key{k1, k2}, Ranges: []segments.Range{
						{Chunk: b, Key: k, Offset: 8, Length: 8},
						{Chunk: a, Key: k, Offset: 0, Length: 8}}})
				if err != nil {
					f.Errorf("replace: %v", err)
				}
			})
		}
		running.Go(func() {
			if err := f.there.Remove(f.Context(), gone); err != nil {
				f.Errorf("remove: %v", err)
			}
		})
		running.Wait()
		f.wantRanges("removed journal", a)
		var of []segments.Range
		for _, ranges := range done {
			for _, r := range ranges {
				if r.Chunk == b {
					of = append(of, r)
				}
			}
		}
		f.equal("replacements of the other journal", len(of), 1)
		f.wantRanges("the other journal", b, of...)
	}
}
