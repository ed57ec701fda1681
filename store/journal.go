package store

import (
	"context"
	"io"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// JournalRetention is the time for which the journals of a batch stay after its end, for readers
// that follow its results.
const JournalRetention = time.Hour

// Record is the result of one line in the journal of its chunk.
type Record struct {
	Line     uint32 // number of the line in its batch
	Failed   bool   // belongs in the error file
	Attempts uint16 // requests sent for the line that a runner may have received
	Usage    batchfile.Usage
	// Result is the line of the output or error file, newline included. Readers get it if it is at
	// most MaxReadResult bytes long; larger ones are copied with Results.
	Result []byte
	// Size is the length of the result, that of one that readers don't get included. It is for
	// readers; journals find it themselves.
	Size int64
	// More continues Result when a record is appended, so that callers need not copy the parts into
	// one. Readers leave it nil.
	More [][]byte
}

// MaxReadResult limits the Result of a record that is read, so that no reader holds a large one in
// memory.
const MaxReadResult = 128 << 10

// Commit sums up records that became durable together, in the order of their Append.
type Commit struct {
	Records   int
	Completed int
	Failed    int
	Bytes     int64 // of their Results, as passed to Append
	Written   int64 // bytes of all their results, those of AppendFrom included
	Usage     batchfile.Usage
	// Err is the reason why the medium refuses records now, such as ErrNoSpace; nil: it does not.
	// The journal keeps the records, tries again by itself, and reports the success as a later
	// commit. ErrFenced is final.
	Err error
}

// Durability declares the time after its Append in which a record may be lost. The dispatcher's
// limits of memory and waiting follow from it, and so does the number of lines that are sent again
// after a crash.
type Durability struct {
	// Delay bounds the time from Append until the commit of the record begins. With the time that
	// the medium takes for a commit it is the time that a Flush waits. Zero: every Append is a
	// commit.
	Delay time.Duration
	// Bytes is the amount, over all journals of a process, that starts a commit before Delay is
	// over.
	Bytes int64
}

// JournalReader reads the results of chunks.
type JournalReader interface {
	// Read calls each for every valid record of the chunk's journal, at most once per line, for the
	// earliest. A chunk without a journal has none.
	Read(ctx context.Context, id ChunkID, each func(Record, Location) error) error
	// Results opens a chunk's journal for reading results at the locations that Read returned.
	// ErrNotFound: there is no journal.
	Results(ctx context.Context, id ChunkID) (Results, error)
}

// Journals holds the results of chunks.
type Journals interface {
	// Durability returns the same value until the journals are closed.
	Durability() Durability
	// Open fences all writers of the chunk with a lower epoch and returns a journal to append to.
	// It calls replay for every valid record in the journal, in order, at most once per line;
	// Result is valid during the call only. After an error the replayed records do not count.
	// Damaged parts (a torn end, flipped bits) are skipped. committed is called when records become
	// durable, never concurrently with itself. ErrFenced: the journal was opened at a higher epoch.
	Open(ctx context.Context, id ChunkID, epoch int64, replay func(Record),
		committed func(Commit)) (Journal, error)
	JournalReader
	// Batches lists the batches that have journals, for a sweeper.
	Batches(ctx context.Context) ([]string, error)
	// Remove deletes all journals of a batch.
	Remove(ctx context.Context, batch string) error
}

// JournalPreparer is implemented by Journals whose Open takes a round trip to a server.
type JournalPreparer interface {
	// Prepare does that for several claimed chunks at once, so that the next Open of each at its
	// epoch is faster. If it fails, Open is as slow as without it.
	Prepare(ctx context.Context, chunks []Chunk) error
}

// SettledJournals is implemented by Journals whose Read and Results take a round trip to a server.
type SettledJournals interface {
	// Settled does that for several chunks at once. Nobody appends to their journals any more: what
	// was added later may be missed.
	Settled(ctx context.Context, chunks []ChunkID) (JournalReader, error)
}

// Results reads results by location. It reads close ones together, so the order of the journal is
// the fastest. It must not be used by several goroutines at once.
type Results interface {
	// Copy writes the Result of the record at a location to w, in pieces.
	Copy(ctx context.Context, w io.Writer, at Location) error
	Close() error
}

// Journal appends the results of one claimed chunk.
type Journal interface {
	// Append queues a record for the next group commit. It copies what it needs, and waits only if
	// the backend has no more memory for queued records. If no wait is needed it succeeds even if
	// ctx has ended.
	Append(ctx context.Context, r Record) error
	// AppendFrom appends a record whose Result is too large for memory: size bytes, read from a
	// reader that result returns, which must yield the same bytes each time. It returns when the
	// record is durable and committed was called for it. It fails if the medium refuses the record
	// (the caller may try again), if a newer claim exists (ErrFenced) or if ctx ends.
	AppendFrom(ctx context.Context, r Record, size int64, result func() io.Reader) error
	// Flush waits until all appended records are durable. It fails if the medium refuses them, if a
	// newer claim exists or if ctx ends.
	Flush(ctx context.Context) error
	// Close flushes until ctx ends, and closes the journal whether or not that succeeds. committed
	// must call neither Close nor Flush.
	Close(ctx context.Context) error
}

// Location is the position of a record's Result in the journal of its chunk.
type Location struct {
	Offset int64
	Length uint32
}
