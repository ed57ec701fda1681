package segments

import (
	"log/slog"
	"time"
)

// Options configures Open. The zero value uses the defaults.
type Options struct {
	// CommitAfter is the time for which an appended record waits for others, to be written into
	// one segment. Default: 500 ms.
	CommitAfter time.Duration
	// CommitFewAfter takes the place of CommitAfter while fewer than CommitFew records wait, since
	// each segment is a paid request whatever its size. At least CommitAfter. Default: 2 s.
	CommitFewAfter time.Duration
	// CommitFew is the number of waiting records from which CommitAfter holds. Default: 32.
	CommitFew int
	// CommitBytes is the amount of waiting records that starts a commit at once. Default: 4 MiB.
	CommitBytes int
	// CommitRecords is the number of waiting records that starts a commit at once. It bounds the
	// lines that a crash sends again. Default: 8192.
	CommitRecords int
	// CommitGap is the least time between the starts of two commits, so that the chunks that end
	// together are flushed together. Default: 200 ms.
	CommitGap time.Duration
	// QueueBytes limits the records that wait for their commit in memory. Append waits for room.
	// Default: 64 MiB.
	QueueBytes int64
	// SegmentBytes limits a segment. A larger record has one of its own. Default: 16 MiB.
	SegmentBytes int
	// RetryAfter is the time until a failed commit is tried again. Default: 1 s.
	RetryAfter time.Duration
	// CommitTimeout limits one attempt to write and register a segment. Default: 30 s.
	CommitTimeout time.Duration
	// CacheBytes limits the pieces of journals that readers keep in memory. Default: 32 MiB.
	CacheBytes int64
	// CompactCount is the number of segments that are compacted into one; negative: none are.
	// Default: 16.
	CompactCount int
	// CompactBytes limits a compacted segment, and the memory of the compaction. Segments above a
	// quarter of it are not compacted. Default: 32 MiB.
	CompactBytes int64
	// SweepAge is the least age of objects that are deleted. A writer that needs longer than that
	// from naming an object to registering it writes it again. Default: 1 h.
	SweepAge time.Duration
	// DeleteAfter is the time for which an object that no journal needs any more stays for readers
	// that have begun to read it. Default: 10 min.
	DeleteAfter time.Duration
	// DeleteEvery is the interval at which such objects are deleted; negative: never. Default: 1
	// min.
	DeleteEvery time.Duration
	// SweepEvery is the interval at which all objects are listed, to delete those that were never
	// registered; negative: never. The first time is at a random moment of that span. Default: 24
	// h.
	SweepEvery time.Duration
	// Observe is called for each attempt to commit a segment. Default: none.
	Observe func(Attempt)
	// Logger receives reports of damage and of failed background work. Default: none.
	Logger *slog.Logger
}

// Attempt describes an attempt to commit a segment.
type Attempt struct {
	Records, Bytes int
	Put, Register  time.Duration // 0: that step was not tried
	Err            error
}

const (
	defaultCache   = 32 << 20
	defaultCompact = 32 << 20
	// DefaultMemory is the most that journals with default options keep in memory, besides records
	// that wait for their commit: the cache, and a compaction with what it reads and writes.
	DefaultMemory = defaultCache + 2*defaultCompact
)

func (o Options) withDefaults() Options {
	set(&o.CommitAfter, 500*time.Millisecond)
	set(&o.CommitFewAfter, max(2*time.Second, o.CommitAfter))
	o.CommitFewAfter = max(o.CommitFewAfter, o.CommitAfter)
	set(&o.CommitFew, 32)
	set(&o.CommitBytes, 4<<20)
	set(&o.CommitRecords, 8192)
	set(&o.CommitGap, 200*time.Millisecond)
	set(&o.QueueBytes, 64<<20)
	set(&o.SegmentBytes, 16<<20)
	set(&o.RetryAfter, time.Second)
	set(&o.CommitTimeout, 30*time.Second)
	set(&o.CacheBytes, defaultCache)
	set(&o.CompactCount, 16)
	set(&o.CompactBytes, defaultCompact)
	set(&o.SweepAge, time.Hour)
	set(&o.DeleteAfter, 10*time.Minute)
	set(&o.DeleteEvery, time.Minute)
	set(&o.SweepEvery, 24*time.Hour)
	if o.Observe == nil {
		o.Observe = func(Attempt) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// set sets a field that is zero to its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
