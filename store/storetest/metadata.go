package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Store is a backend under test, or several backends that together are one store: a field for each
// interface of the contract. A suite documents which fields it uses; the others may be nil.
type Store struct {
	store.Files
	store.Uploads
	store.UploadParts
	store.Batches
	store.BatchLists
	store.Changes
	store.References
	store.Owners
	store.Claims
	store.Tallies
	store.Locks
	store.Leads
	store.ProgressBoard
	store.Keys
	store.Status
}

// Backend is a backend of all records and of progress.
type Backend interface {
	store.Records
	store.ProgressBoard
}

// StoreOf returns the Store whose every field is b.
func StoreOf(b Backend) Store { return Store{b, b, b, b, b, b, b, b, b, b, b, b, b, b, b} }

// Open returns a new, empty store that reads the time from now, and closes it when the test ends.
type Open func(t *testing.T, now func() time.Time) Store

// TestMetadata runs all suites for records.
func TestMetadata(t *testing.T, open Open) {
	t.Run("Files", func(t *testing.T) { TestFiles(t, open) })
	t.Run("Uploads", func(t *testing.T) { TestUploads(t, open) })
	t.Run("Batches", func(t *testing.T) { TestBatches(t, open) })
	t.Run("Changes", func(t *testing.T) { TestChanges(t, open) })
	t.Run("References", func(t *testing.T) { TestReferences(t, open) })
	t.Run("Claims", func(t *testing.T) { TestClaims(t, open) })
	t.Run("Locks", func(t *testing.T) { TestLocks(t, open) })
	t.Run("Progress", func(t *testing.T) { TestProgress(t, open) })
	t.Run("Keys", func(t *testing.T) { TestKeys(t, open) })
	t.Run("Status", func(t *testing.T) { TestStatus(t, open) })
}

// TestFiles runs the suite for Files. It uses it and, for UsedBytes, Uploads, UploadParts and
// Batches.
func TestFiles(t *testing.T, open Open) {
	run(t, open, []test{
		{"files are stored", filesKeep},
		{"files are listed page by page", filesList},
		{"files are listed without summaries", filesListWithoutSummaries},
		{"files expire", filesExpire},
		{"usage follows files and parts", usageFollowsRows},
	})
}

// TestUploads runs the suite for Uploads and UploadParts. It uses these and Files.
func TestUploads(t *testing.T, open Open) {
	run(t, open, []test{
		{"uploads end once", uploadsEnd},
		{"uploads take parts while pending", uploadsParts},
		{"uploads are counted while pending", uploadsCount},
		{"uploads are purged when they are over", uploadsPurge},
	})
}

// TestBatches runs the suite for Batches and BatchLists. It uses these and Files, References,
// Owners, Claims and Locks.
func TestBatches(t *testing.T, open Open) {
	run(t, open, []test{
		{"batches are stored", batchesKeep},
		{"batches are created with files in one step", batchesComeWithFiles},
		{"batches are changed by compare and set", batchesUpdate},
		{"terminal batches do not change", batchesFreeze},
		{"concurrent updates of batches conflict", batchesRace},
		{"batches are finished by the holder of their lock", batchesFinish},
		{"batches are stale after their retention", batchesStale},
		{"batches are listed in any order under any filter", batchesList},
		{"batches' cursors survive changes", batchesCursors},
		{"ended contexts end methods", contextsEnd},
	})
}

// TestChanges runs the suite for Changes. It uses Batches and Changes.
func TestChanges(t *testing.T, open Open) {
	run(t, open, []test{
		{"changes are followed by cursor", changesFollow},
		{"changes of an empty store have a cursor", changesOfNothing},
		{"unknown cursors are refused", changesBadCursor},
		{"no change is missed while many are committed", changesRace},
	})
}

// TestReferences runs the suite for References. It uses it and Files and Batches.
func TestReferences(t *testing.T, open Open) {
	run(t, open, []test{
		{"references hold blobs", referencesHold},
		{"references to dropped blobs are refused", referencesRefuse},
		{"references exclude drops", referencesRace},
	})
}

// TestClaims runs the suite for Owners, Claims and Tallies. It uses these, Batches and Locks.
func TestClaims(t *testing.T, open Open) {
	run(t, open, []test{
		{"chunks are added once", chunksLayout},
		{"chunks need a batch", chunksOfNoBatch},
		{"chunks are claimed lowest first", chunksOrder},
		{"chunks can be reopened", chunksReopened},
		{"done chunks are summed up", chunksSummed},
		{"owners are live while their lease lasts", ownersLive},
		{"chunks are claimed by one owner each", chunksRace},
		{"chunks are free after the end of their owner", chunksFree},
		{"chunks can be claimed again by an owner that did not get the answer", chunksLostTrackOf},
		{"claims agree with the obvious model", claimsModel},
	})
}

// TestLocks runs the suite for Locks and Leads. It uses these and Owners.
func TestLocks(t *testing.T, open Open) {
	run(t, open, []test{
		{"locks have one holder", locksRace},
		{"names have one leader", leadsExclusive},
		{"concurrent leaders exclude each other", leadsRace},
	})
}

// TestProgress runs the suite for ProgressBoard. It uses it and Batches, Owners, Claims and
// Tallies.
func TestProgress(t *testing.T, open Open) {
	run(t, open, []test{
		{"progress adds up", progressAdds},
		{"progress is that of a node's newest owner", progressOfNewest},
		{"a finished chunk counts once", finishedChunkCountsOnce},
	})
}

// TestKeys runs the suite for Keys. It uses Keys.
func TestKeys(t *testing.T, open Open) {
	run(t, open, []test{
		{"keys are remembered once", keysOnce},
	})
}

// TestStatus runs the suite for Status. It uses it and Files, Batches and Owners.
func TestStatus(t *testing.T, open Open) {
	run(t, open, []test{
		{"a store answers", storeAnswers},
		{"the newest time is found", newestFound},
	})
}

// test is one test of a suite.
type test struct {
	name string
	run  func(t *testing.T, m Store, c *clock)
}

func run(t *testing.T, open Open, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newClock()
			test.run(t, open(t, c.Now), c)
		})
	}
}

func contextsEnd(t *testing.T, m Store, _ *clock) {
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
