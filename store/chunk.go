package store

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// ChunkID identifies a chunk: consecutive positions in its batch's order that are claimed together.
type ChunkID struct {
	Batch string
	Index int
}

// Chunk is a group of lines of one model.
type Chunk struct {
	ChunkID
	Model        string
	First, Count int // positions in the batch's order, not line numbers
	Epoch        int64
	Done         bool
	Tally        Tally // sum of the records in its journal, set by FinishChunks; zero before
	// Counted is the hour in which the ledger counts the Tally; zero: it does not.
	Counted time.Time
}

// Tally sums up the results in a chunk's journal, so that counting does not read the journals of
// done chunks.
type Tally struct {
	Completed, Failed int
	Usage             batchfile.Usage
	Bytes             int64 // of the results
}

// DoneChunks sums up the done chunks of a batch.
type DoneChunks struct {
	Completed, Failed int   // over all done chunks
	Done              []int // those of the chunks asked for that are done
}

// Tallies sums up what is done.
type Tallies interface {
	// SumDone sums up the done chunks of each batch. The indexes select the chunks that the caller
	// asks for; there may be none. Batches of which nothing is done are absent. All chunks in Done
	// are in the sums, and no other chunk asked for is.
	SumDone(ctx context.Context, chunks map[string][]int) (map[string]DoneChunks, error)
}

// ChunkCounts counts the chunks of a batch that are free, claimed (under a lease that lasts) and
// done.
type ChunkCounts struct {
	Free, Claimed, Done int
}

// Claims hands out chunks to dispatchers.
type Claims interface {
	// AddChunks stores the chunks of a batch, once: a second call for the same batch changes
	// nothing. ErrNotFound: there is no such batch.
	AddChunks(ctx context.Context, batch string, chunks []Chunk) error
	// ClaimChunks gives the owner up to n free chunks of one model of a batch, lowest index first,
	// each with an epoch above all earlier ones. A chunk is free if it is not done and nobody has
	// claimed it, if the lease of its owner has ended, or if the owner itself has claimed it and
	// its index is not in held: the owner did not get an earlier answer of the store. An owner
	// whose own lease has ended gets none until it renews. ErrFenced: the owner is superseded or
	// has unregistered. ErrNoSpace: there is no space for results.
	ClaimChunks(ctx context.Context, o Owner, batch, model string, n int, held []int) ([]Chunk,
		error)
	// FinishChunks marks claimed chunks done, stores their Tallies and adds them to the ledger, all
	// in one step. The owner may repeat it when it got no answer. ErrFenced: one of the claims is
	// not the newest, and nothing has changed.
	FinishChunks(ctx context.Context, o Owner, chunks ...Chunk) error
	// ReleaseChunk frees a claimed chunk. ErrFenced: the claim is not the newest.
	ReleaseChunk(ctx context.Context, o Owner, c Chunk) error
	// ReopenChunk frees a done chunk, clears its Tally and takes it from the ledger, because its
	// journal has lost results since. It changes nothing if the chunk is not done at the epoch of
	// c, or if its batch is terminal.
	ReopenChunk(ctx context.Context, c Chunk) error
	// Chunks lists all chunks of a batch by index.
	Chunks(ctx context.Context, batch string) ([]Chunk, error)
	// LinesLeft counts, for each batch that has chunks and has not ended, the lines of its chunks
	// that are not done, by model.
	LinesLeft(ctx context.Context) (map[string]map[string]int, error)
	// CountChunks counts the chunks of a batch. Those that o could claim with the same held are
	// free.
	CountChunks(ctx context.Context, o Owner, batch string, held []int) (ChunkCounts, error)
}
