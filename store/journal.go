package store

import (
	"context"
	"io"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// JournalLife is how long the journals of a batch are kept after its end, for readers that follow
// its results.
const JournalLife = time.Hour

// Record is the result of one line as its chunk's journal keeps it.
type Record struct {
	Line     uint32 // number of the line in its batch
	Failed   bool   // goes to the error file
	Attempts uint16 // requests sent for the line that a runner may have received
	Usage    batchfile.Usage
	// Result is the finished line of the output or error file, newline included. Readers get it if
	// it is at most MostRead bytes long; larger ones are read where they stand (Results).
	Result []byte
	// More is what of the result follows Result when a record is appended, so that nobody has to
	// copy it into one piece before. Readers don't set it.
	More [][]byte
}

// MostRead bounds the Result of a record that is read, so that no reader holds a large one in
// memory.
const MostRead = 128 << 10

// Commit tells of records that became durable together, in the order of their Append.
type Commit struct {
	Records   int
	Completed int
	Failed    int
	Bytes     int64 // of their Results, as Append was given them
	Usage     batchfile.Usage
	// Err, when set, says why the medium doesn't take records now (ErrNoSpace, say). Nothing is
	// lost: the journal keeps what it was given, tries again by itself, and reports the success as
	// a later commit. ErrFenced is final.
	Err error
}

// Durability declares for how long a record may be lost after its Append. What a dispatcher holds
// and waits for follows from it, and so does the number of lines that are sent again after a crash.
type Durability struct {
	// Delay bounds the time from Append until the commit of the record begins. With the time that
	// the medium takes for a commit it is how long a Flush waits. Zero: every Append is a commit.
	Delay time.Duration
	// Bytes is how much the journals of a process hold together before a commit begins without
	// waiting for Delay.
	Bytes int64
}

// Journals keeps the results of chunks.
type Journals interface {
	// Durability returns the same value until the journals are closed.
	Durability() Durability
	// Open fences all writers of the chunk with a lower epoch and returns a journal to append to.
	// replay is called for every valid record that stands there already, in order, at most one per
	// line; its Result is valid during the call only. An error voids what was replayed. Damaged
	// stretches (a torn tail, flipped bits) are skipped, and counted. ErrFenced when a higher epoch
	// has been there. committed is called, never concurrently with itself, as records become
	// durable.
	Open(ctx context.Context, id ChunkID, epoch int64, replay func(Record),
		committed func(Commit)) (Journal, error)
	// Read calls each with every valid record of the chunk's journal, at most one per line, the
	// earliest. A chunk without a journal has none.
	Read(ctx context.Context, id ChunkID, each func(Record, Location) error) error
	// Results opens a chunk's journal for reading results where Read found them; ErrNotFound if
	// there is none.
	Results(ctx context.Context, id ChunkID) (Results, error)
	// Batches lists the batches that have journals, for a sweeper that drops those whose time is
	// over.
	Batches(ctx context.Context) ([]string, error)
	// Remove deletes all journals of a batch.
	Remove(ctx context.Context, batch string) error
}

// Results reads results by location. Places that lie close together are read together, so the order
// of the journal is the quick one. It is for one goroutine.
type Results interface {
	// Copy reads the Result of the record at a location and writes it to w, a piece at a time.
	Copy(ctx context.Context, w io.Writer, at Location) error
	Close() error
}

// Journal takes the results of one claimed chunk.
type Journal interface {
	// Append queues a record for the next group commit. It copies what it needs and does not wait
	// for the medium, unless the backend holds as much as it can in memory. A context that has
	// ended ends that wait, and refuses nothing that needs none.
	Append(ctx context.Context, r Record) error
	// AppendFrom appends a record whose Result is too large for memory: the size bytes that a
	// reader of result yields, the same ones each time. It returns when the record is durable and
	// committed was called for it, or when the medium refuses it (the caller may try again), a
	// newer claim has come (ErrFenced) or ctx is done.
	AppendFrom(ctx context.Context, r Record, size int64, result func() io.Reader) error
	// Flush waits until all that was appended is durable, or the medium or a newer claim refuses.
	Flush(ctx context.Context) error
	// Close flushes while ctx lasts, and closes the journal whether or not that succeeds. Neither
	// it nor Flush may be called from within committed.
	Close(ctx context.Context) error
}

// Location is where a record's Result stands within its chunk's journal.
type Location struct {
	Offset int64
	Length uint32
}
