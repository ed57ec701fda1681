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
	store.LearnedStates
	store.PoolHistory
	store.Ledger
	store.ProgressBoard
	store.Keys
	store.KeyUses
	store.Notices
	store.Status
	store.Portable
}

// Backend stores all records and the progress of batches.
type Backend interface {
	store.Records
	store.ProgressBoard
}

// StoreOf returns the Store whose every field is b.
func StoreOf(b Backend) Store {
	return Store{b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b,
		b, b, b, b}
}

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
	t.Run("Learned", func(t *testing.T) { TestLearned(t, open) })
	t.Run("PoolHistory", func(t *testing.T) { TestPoolHistory(t, open) })
	t.Run("Ledger", func(t *testing.T) { TestLedger(t, open) })
	t.Run("Progress", func(t *testing.T) { TestProgress(t, open) })
	t.Run("Keys", func(t *testing.T) { TestKeys(t, open) })
	t.Run("KeyUses", func(t *testing.T) { TestKeyUses(t, open) })
	t.Run("Notices", func(t *testing.T) { TestNotices(t, open) })
	t.Run("Status", func(t *testing.T) { TestStatus(t, open) })
	t.Run("Portable", func(t *testing.T) { TestPortable(t, open) })
}

// TestFiles runs the suite for Files. It uses Files and, for UsedBytes, Uploads,
// UploadParts and Batches.
func TestFiles(t *testing.T, open Open) {
	run(t, open, []test{
		{"files are stored", filesAreStored},
		{"files are listed page by page", filesAreListed},
		{"files are listed without summaries", filesAreListedWithoutSummaries},
		{"files expire", filesExpire},
		{"used bytes include files and parts", usageCountsFilesAndParts},
	})
}

// TestUploads runs the suite for Uploads and UploadParts. It uses both and Files.
func TestUploads(t *testing.T, open Open) {
	run(t, open, []test{
		{"uploads end once", uploadsEndOnce},
		{"uploads take parts while pending", uploadsTakeParts},
		{"uploads are counted while pending", uploadsAreCounted},
		{"uploads are purged when they are over", uploadsArePurged},
	})
}

// TestBatches runs the suite for Batches and BatchLists. It uses both, and Files, References,
// Owners, Claims and Locks.
func TestBatches(t *testing.T, open Open) {
	run(t, open, []test{
		{"batches are stored", batchesAreStored},
		{"batches are created with files in one step", batchesAreCreatedWithFiles},
		{"batches are changed by compare and set", batchesAreUpdated},
		{"terminal batches do not change", terminalBatchesDoNotChange},
		{"concurrent updates of batches conflict", concurrentUpdatesConflict},
		{"batches are finished by the holder of their lock", batchesAreFinished},
		{"batches are stale after their retention", batchesBecomeStale},
		{"batches are listed in any order under any filter", batchesAreListed},
		{"batches of all tenants are found, the newest first", batchesAreFound},
		{"cursors of lists of batches stay valid after changes", batchCursorsStayValid},
		{"methods return the error of a canceled context", canceledContextsEndMethods},
	})
}

// TestChanges runs the suite for Changes. It uses Batches and Changes.
func TestChanges(t *testing.T, open Open) {
	run(t, open, []test{
		{"changes are followed by cursor", changesAreFollowed},
		{"changes of an empty store have a cursor", changesOfEmptyStore},
		{"unknown cursors are refused", unknownCursorsAreRefused},
		{"no change is missed while many are committed", concurrentChangesAreSeen},
	})
}

// TestReferences runs the suite for References. It uses References, Files and Batches.
func TestReferences(t *testing.T, open Open) {
	run(t, open, []test{
		{"blobs with references are not dropped", referencesKeepBlobs},
		{"references to dropped blobs are refused", referencesToDroppedBlobs},
		{"a blob is either referred to or dropped", concurrentReferencesAndDrops},
	})
}

// TestClaims runs the suite for Owners, Claims and Tallies. It uses the three, Batches and
// Locks.
func TestClaims(t *testing.T, open Open) {
	run(t, open, []test{
		{"chunks are added once", chunksAreAddedOnce},
		{"chunks need a batch", chunksNeedBatch},
		{"chunks are claimed lowest first", chunksAreClaimedInOrder},
		{"chunks are finished together", chunksAreFinishedTogether},
		{"chunks can be reopened", chunksAreReopened},
		{"done chunks are summed up", doneChunksAreSummed},
		{"owners join teams", ownersJoinTeams},
		{"owners are live while their lease lasts", ownersLiveWithLease},
		{"chunks are claimed by one owner each", concurrentClaims},
		{"chunks are free after the end of their owner", chunksOfEndedOwners},
		{"an owner that missed the answer can claim chunks again", chunksAreClaimedAgain},
		{"claims agree with a simple model", claimsAgreeWithModel},
	})
}

// TestLocks runs the suite for Locks and Leads. It uses both and Owners.
func TestLocks(t *testing.T, open Open) {
	run(t, open, []test{
		{"locks have one holder", concurrentLocks},
		{"names have one leader", namesHaveOneLeader},
		{"concurrent leaders exclude each other", concurrentLeaders},
	})
}

// TestProgress runs the suite for ProgressBoard. It uses ProgressBoard, Batches, Owners, Claims and
// Tallies.
func TestProgress(t *testing.T, open Open) {
	run(t, open, []test{
		{"progress is summed", progressIsSummed},
		{"forecasts of processes are joined", forecastsAreJoined},
		{"progress is that of a node's newest owner", progressOfNewestOwner},
		{"a finished chunk counts once", finishedChunkCountsOnce},
	})
}

// TestKeys runs the suite for Keys. It uses Keys.
func TestKeys(t *testing.T, open Open) {
	run(t, open, []test{
		{"the first value of a key is stored", keysAreStoredOnce},
	})
}

// TestKeyUses runs the suite for KeyUses. It uses KeyUses.
func TestKeyUses(t *testing.T, open Open) {
	run(t, open, []test{
		{"the last use of a key is kept", lastUseOfAKeyIsKept},
		{"processes note keys at the same time", keysAreNotedConcurrently},
	})
}

// TestStatus runs the suite for Status. It uses Status, Files, Uploads, UploadParts, Batches and
// Owners.
func TestStatus(t *testing.T, open Open) {
	run(t, open, []test{
		{"a store answers", storeAnswers},
		{"the newest stored time is returned", newestTimeIsReturned},
		{"tenants are listed with what they have stored", tenantsAreListed},
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
			t.Parallel()
			c := newClock()
			test.run(t, open(t, c.Now), c)
		})
	}
}

func canceledContextsEndMethods(t *testing.T, m Store, _ *clock) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.CreateBatch(ctx, newBatch("b", "t")); !errors.Is(err, context.Canceled) {
		t.Errorf("create batch: got %v, want %v", err, context.Canceled)
	}
	if _, err := m.Batch(ctx, "t", "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("load batch: got %v, want %v", err, context.Canceled)
	}
	must(t, m.CreateBatch(t.Context(), newBatch("b", "t"))) // the canceled call has no effect
}
