package store

import (
	"context"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// ChunkID names a chunk: a run of positions in its batch's order that are claimed together.
type ChunkID struct {
	Batch string
	Index int
}

// Chunk is a run of lines of one model.
type Chunk struct {
	ChunkID
	Model        string
	First, Count int // positions in the batch's order, not line numbers
	Epoch        int64
	Done         bool
	Tally        Tally // sum of the records in its journal, kept by FinishChunk; zero before
}

// Tally sums up the results in a chunk's journal, so that nobody has to read the journals of done
// chunks to count.
type Tally struct {
	Completed, Failed int
	Usage             batchfile.Usage
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

// ChunkCounts holds how many chunks of a batch are free, claimed (under a living lease) and done.
type ChunkCounts struct {
	Free, Claimed, Done int
}

// Claims hands out chunks to dispatchers.
type Claims interface {
	// AddChunks lays out a batch, once: a second call for the same batch changes nothing.
	// ErrNotFound if the batch is gone.
	AddChunks(ctx context.Context, batch string, chunks []Chunk) error
	// ClaimChunks gives the owner up to n free chunks of one model of a batch, lowest index first,
	// each with an epoch above all earlier ones. A chunk is free when nobody has claimed it, when
	// its owner's lease has run out, or when the owner itself holds it but does not list it in
	// inHand, the indexes of the chunks that it works on: an earlier answer of the store got lost,
	// say. An owner whose own lease has run out gets none until it renews; one that is superseded
	// or unregistered gets ErrFenced. ErrNoSpace while there is no room for results.
	ClaimChunks(ctx context.Context, o Owner, batch, model string, n int, inHand []int) ([]Chunk,
		error)
	// FinishChunk marks the claimed chunk done and keeps its Tally, in one step. ErrFenced when the
	// claim is not the newest. The claimant may repeat it when it got no answer.
	FinishChunk(ctx context.Context, o Owner, c Chunk) error
	// ReleaseChunk puts a claimed chunk back. ErrFenced when the claim is not the newest.
	ReleaseChunk(ctx context.Context, o Owner, c Chunk) error
	// ReopenChunk takes back that a chunk is done, because its journal has lost results since: it
	// is free again and has no Tally. The epoch is that of the chunk as it was listed; a chunk that
	// isn't done at that epoch stays as it is, and so do all chunks of a terminal batch.
	ReopenChunk(ctx context.Context, c Chunk) error
	// Chunks lists all chunks of a batch by index.
	Chunks(ctx context.Context, batch string) ([]Chunk, error)
	// LinesLeft counts, for each batch that has not ended and is laid out, the lines of its chunks
	// that are not done, by model.
	LinesLeft(ctx context.Context) (map[string]map[string]int, error)
	// CountChunks counts as o sees them: what it could claim with the same inHand is free.
	CountChunks(ctx context.Context, o Owner, batch string, inHand []int) (ChunkCounts, error)
}
