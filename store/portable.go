package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// RowKind is a kind of records that moves to another backend.
type RowKind string

// The kinds with the types of their values.
const (
	FileRows    RowKind = "files"            // File
	UploadRows  RowKind = "uploads"          // Upload, expired only if its row says so
	PartRows    RowKind = "parts"            // Part
	BatchRows   RowKind = "batches"          // StoredBatch
	ChunkRows   RowKind = "chunks"           // Chunk
	KeyRows     RowKind = "idempotency keys" // StoredKey
	LearnedRows RowKind = "learned states"   // StoredLearned
	EpochRows   RowKind = "epochs"           // int64
	NoticeRows  RowKind = "notices"          // Notice
	HourRows    RowKind = "hours of pools"   // PoolHour
	UsageRows   RowKind = "hours of usage"   // Used
	KeyUseRows  RowKind = "uses of API keys" // KeyUse
)

// RowKinds lists all kinds so that each follows those that it refers to. Claims, leases and
// progress are not among them: they end with the processes that hold them.
var RowKinds = []RowKind{FileRows, UploadRows, PartRows, BatchRows, ChunkRows, KeyRows,
	LearnedRows, EpochRows, NoticeRows, HourRows, UsageRows, KeyUseRows}

// RowKey names a row among those of its kind: files, uploads, parts and batches by the number that
// grows with each, chunks by batch and index, keys by tenant and key, learned states by pool and
// kind, epochs by the name of the lock (empty: the one of leaderships), notices by endpoint and
// batch, hours of pools by pool and microseconds since 1970, hours of usage by tenant, model, class
// and those microseconds, uses of API keys by hash.
type RowKey struct {
	Name, Sub, Third string
	Number           int64
}

// Compare orders keys by the bytes of their names and then by number.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(cmp.Compare(k.Name, other.Name), cmp.Compare(k.Sub, other.Sub),
		cmp.Compare(k.Third, other.Third), cmp.Compare(k.Number, other.Number))
}

// Row is a record of a store that moves to another backend.
type Row struct {
	Key   RowKey
	Value any
}

// StoredBatch is a batch with what is stored beside it.
type StoredBatch struct {
	Batch
	Parameters *Parameters // nil: none
	Ended      time.Time   // as retention counts it; zero: it is not terminal
}

// StoredKey is an idempotency key that was remembered.
type StoredKey struct {
	Value     string
	ExpiresAt time.Time
}

// StoredLearned is a learned state with the time at which it was saved.
type StoredLearned struct {
	Data    []byte
	SavedAt time.Time
}

// MoveState says what a move between backends means for a store.
type MoveState string

const (
	MoveNone      MoveState = ""          // the store can be used
	MoveReceiving MoveState = "receiving" // it has a part of the records of another store
	MoveAway      MoveState = "moved"     // its records are in use in another store
)

// Move is the part of a store in a move between backends.
type Move struct {
	// Installation identifies what is stored; moves keep it. Empty: the store has never moved.
	Installation string
	State        MoveState
	Peer         string    // the other store, for people
	At           time.Time // since when; zero: the store has never moved
}

// KnownOwner is an owner that the store remembers.
type KnownOwner struct {
	Owner
	// LeaseLeft is the time until its lease ends, by the clock of the backend; 0 or less: it has
	// ended.
	LeaseLeft time.Duration
}

// Portable moves the records of a stopped installation from one backend to another. No process
// works with the store meanwhile.
type Portable interface {
	// ExportRows yields all rows of a kind by ascending key, as they are when it begins. It ends
	// with the first error.
	ExportRows(ctx context.Context, kind RowKind) iter.Seq2[Row, error]
	// ImportRows removes the rows with the keys, with all that belongs to them, and stores the
	// other rows, each in the place of the one with its key, in one step. Chunks are free then, and
	// ChangedBatches reports the batches. References to blobs follow from files and batches.
	ImportRows(ctx context.Context, kind RowKind, rows []Row, removed []RowKey) error
	// NoticeEndpoints lists the endpoints that have a cursor of notices.
	NoticeEndpoints(ctx context.Context) ([]string, error)
	// KnownOwners lists all owners by node.
	KnownOwners(ctx context.Context) ([]KnownOwner, error)
	// Move reads the part of the store in a move.
	Move(ctx context.Context) (Move, error)
	// SetMove writes it. With MoveNone, rows that are created from then on have numbers above
	// those of all imported ones.
	SetMove(ctx context.Context, m Move) error
}

const (
	// CopyNode begins the names under which copies register. No daemon has such a name.
	CopyNode = "*store-copy/"
	// CopyLock is the lock of a copy in both of its stores.
	CopyLock = "store-copy"
)

// CheckMove returns an error if the state of a move does not let a daemon use the store.
func CheckMove(ctx context.Context, p Portable, o OpenOptions) error {
	if o.Moving {
		return nil
	}
	m, err := p.Move(ctx)
	if err != nil {
		return err
	}
	switch m.State {
	case MoveReceiving:
		return fmt.Errorf("a copy of %s into this store began at %s and is not complete; run the "+
			"same `tidefill store copy` again until it succeeds", m.Peer, m.At.Format(time.RFC3339))
	case MoveAway:
		return fmt.Errorf("this store was moved to %s at %s; start with the configuration of that "+
			"store, or move it back by `tidefill store copy`", m.Peer, m.At.Format(time.RFC3339))
	case MoveNone:
	}
	owners, err := p.KnownOwners(ctx)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if o.LeaseLeft > 0 && strings.HasPrefix(o.Node, CopyNode) {
			return errors.New("`tidefill store copy` uses this store now; start when it has ended")
		}
	}
	return nil
}
