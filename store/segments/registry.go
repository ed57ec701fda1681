package segments

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/store"
)

// ErrSwept means that the key is at or below the boundary of the sweep, so its object may have been
// deleted. The caller writes the object again under a new key.
var ErrSwept = errors.New("the sweep has passed the key")

// Registry records which segments exist, and which of their ranges belong to which chunk. It is the
// only truth about that: an object that is not registered does not exist. All coordination is here,
// none is in the object storage.
//
// Every method is one step: it happens as a whole or not at all, and all steps have one order, in
// which each step is after those that had returned when it was called. (Serializable is enough; so
// is read committed, with locks on the rows of the chunks and on that of the boundary.) Methods are
// safe for concurrent use by several processes, and keep nothing in the process. A step whose
// caller got an error, or no answer, may have happened. A database that does not answer is
// store.ErrUnavailable.
//
// # State
//
//   - a counter of processes
//   - per chunk that was fenced and not removed: its epoch, and the length of its journal
//   - per registered segment: its key, its size, and its ranges; each has a chunk, the place in the
//     object, and the place in the chunk's journal
//   - the queue: keys of segments that have no range any more, with the time of queueing
//   - the boundary swept_through, a stamp
//
// There is a row for each segment and for each chunk in it, never one for a line. Two processes
// register segments at the same time, of different chunks as a rule: no row may serialize them.
//
// # What makes it safe
//
// A journal is the ranges of its chunk in the order of At. They have no gaps, and no byte of a
// journal changes once it is registered: Replace moves ranges to another object and keeps At. So
// the locations of results, and cursors of users, stay valid.
//
// An object is deleted only if its key is at or below swept_through and no range is in it. A key at
// or below swept_through is never registered. So a process that was suspended between writing an
// object and registering it can't register one that has been deleted.
type Registry interface {
	// Enroll returns a number that no other call has returned or will return, at least 1, and the
	// server's time.
	Enroll(ctx context.Context) (process int64, now Stamp, err error)
	// Now returns the server's time.
	Now(ctx context.Context) (Stamp, error)

	// Fence sets the epochs of chunks and returns the ranges of their journals, in the order of the
	// fences and by At. From then on Register leaves out parts of lower epochs. A chunk that is not
	// known becomes known, with an empty journal. The same epoch may be set again. ErrFenced: one
	// of the chunks has a higher epoch; nothing changes.
	Fence(ctx context.Context, fences ...Fence) ([]Range, error)
	// Register makes a segment exist. Of its parts, those count whose epoch is the one of their
	// chunk: each is appended to the journal of its chunk. The others are left out, those of
	// chunks that are not known (their batch was removed) included. If no part counts, then nothing
	// is registered and the key stays unknown.
	//
	// ErrSwept: the key is at or below swept_through. ErrExists: the key is registered or queued;
	// the caller, who got no answer to an earlier call, registers the same records again under
	// another key, since readers take the first record of a line.
	Register(ctx context.Context, s Segment) (Registered, error)
	// Ranges returns the ranges of the chunks' journals, in the order of the chunks and by At.
	// Those that are empty or not known have none.
	Ranges(ctx context.Context, chunks ...store.ChunkID) ([]Range, error)
	// Batches lists the batches that have known chunks, in any order.
	Batches(ctx context.Context) ([]string, error)
	// Remove forgets the chunks of a batch with their ranges, and queues the segments that have no
	// range any more.
	Remove(ctx context.Context, batch string) error

	// Replace makes a segment exist that has the bytes of others. A range of r counts if the ranges
	// that lie within its [At, At+Length) in the journal of its chunk are all in objects of r.Old,
	// and have Length bytes together; it then takes their place, in the same step for all ranges
	// that count. The others are left out. Segments of r.Old that have no range any more are
	// queued, those that still have some stay. If no range counts, then nothing is registered and
	// the key stays unknown. The epochs do not matter: no record is added. It returns the ranges
	// that count. ErrSwept, ErrExists: as in Register.
	Replace(ctx context.Context, r Replacement) ([]Range, error)

	// AdvanceSweep sets swept_through to the server's time less age, unless it is higher already,
	// and returns it. Each Register and Replace is before it, and then Unknown sees its segment, or
	// after it, and then is refused if its key is at or below the new boundary.
	AdvanceSweep(ctx context.Context, age time.Duration) (through Stamp, err error)
	// Unknown returns those of the keys that are neither registered nor queued.
	Unknown(ctx context.Context, keys []Key) ([]Key, error)
	// TakeDeletions returns up to limit keys that are at or below swept_through and were queued at
	// least wait ago, those first that were queued first. They stay queued, so a second call
	// returns them again.
	TakeDeletions(ctx context.Context, wait time.Duration, limit int) ([]Key, error)
	// FinishDeletions takes keys, whose objects were deleted, off the queue. Those that are not
	// queued, or above swept_through, are ignored.
	FinishDeletions(ctx context.Context, keys []Key) error
}

// Fence is the epoch that a chunk gets.
type Fence struct {
	Chunk store.ChunkID
	Epoch int64
}

// Range is a part of a chunk's journal that lies in one object.
type Range struct {
	Chunk  store.ChunkID
	Key    Key
	Offset int64 // in the object
	Length int64 // above 0
	At     int64 // of its first byte in the journal of the chunk
}

// End returns the position after the range in the journal of its chunk.
func (r Range) End() int64 { return r.At + r.Length }

// Segment is an object that was written and shall exist.
type Segment struct {
	Key   Key
	Bytes int64
	Parts []Part // at least one; of each chunk at most one
}

// Part is a piece of a segment that shall be appended to the journal of a chunk.
type Part struct {
	Chunk  store.ChunkID
	Epoch  int64 // at which the writer has fenced the chunk
	Offset int64 // in the object
	Length int64 // above 0
}

// Registered reports what has become of a segment.
type Registered struct {
	Ranges []Range         // of the parts that count, in the order of Segment.Parts
	Fenced []store.ChunkID // of the parts that were left out
	Now    Stamp           // the server's time
}

// Replacement is an object that holds the bytes of others.
type Replacement struct {
	Key    Key
	Bytes  int64
	Old    []Key   // at least one
	Ranges []Range // at least one, all in Key; those of one chunk do not overlap
}
