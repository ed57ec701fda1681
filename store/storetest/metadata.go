package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
)

// TestMetadata runs the suite for [store.Metadata]. open returns a new, empty backend that takes
// the time from now, and closes it when the test ends.
func TestMetadata(t *testing.T, open func(t *testing.T, now func() time.Time) store.Metadata) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, m store.Metadata, c *clock)
	}{
		{"files keep what they are given", filesKeep},
		{"files are listed page by page", filesList},
		{"files expire", filesExpire},
		{"uploads end once", uploadsEnd},
		{"uploads take parts while pending", uploadsParts},
		{"uploads are counted while pending", uploadsCount},
		{"uploads are purged when they are over", uploadsPurge},
		{"usage follows files and parts", usageFollowsRows},
		{"files are listed without summaries", filesListWithoutSummaries},
		{"batches keep what they are given", batchesKeep},
		{"batches come with files in one step", batchesComeWithFiles},
		{"batches are changed by compare and set", batchesUpdate},
		{"batches freeze at their end", batchesFreeze},
		{"batches tell what changed", batchesChanged},
		{"batches go stale", batchesStale},
		{"batches are finished by the holder of their lock", batchesFinish},
		{"references hold blobs", referencesHold},
		{"references to dropped blobs are refused", referencesRefuse},
		{"references race with drops", referencesRace},
		{"batches race for updates", batchesRace},
		{"batches are listed in any order under any filter", batchesList},
		{"batches' cursors survive changes", batchesCursors},
		{"chunks are laid out once", chunksLayout},
		{"chunks need a batch", chunksOfNoBatch},
		{"chunks are claimed lowest first", chunksOrder},
		{"chunks can be reopened", chunksReopened},
		{"chunks are claimed by one owner each", chunksRace},
		{"chunks come free with their owner", chunksFree},
		{"chunks can be claimed again by an owner that lost track of them", chunksLostTrackOf},
		{"claims agree with the obvious model", claimsModel},
		{"locks have one holder", locksRace},
		{"names have one leader", leadsExclusive},
		{"leaders race", leadsRace},
		{"progress adds up", progressAdds},
		{"a finished chunk counts once", finishedChunkCountsOnce},
		{"keys are remembered once", keysOnce},
		{"the newest time is found", newestFound},
		{"ended contexts end methods", contextsEnd},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClock()
			m := open(t, c.Now)
			if err := m.Ping(t.Context()); err != nil {
				t.Fatalf("ping: %v", err)
			}
			test.run(t, m, c)
		})
	}
}

func contextsEnd(t *testing.T, m store.Metadata, _ *clock) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.CreateBatch(ctx, newBatch("b", "t")); !errors.Is(err, context.Canceled) {
		t.Errorf("create batch: got %v, want %v", err, context.Canceled)
	}
	if _, err := m.Batch(ctx, "t", "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("load batch: got %v, want %v", err, context.Canceled)
	}
	must(t, m.CreateBatch(t.Context(), newBatch("b", "t"))) // nothing was left under way
}

// must fails the test at once when a step that only prepares it goes wrong.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is must for steps with a result.
func got[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func wantEqual[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
