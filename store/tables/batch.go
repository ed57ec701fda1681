package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// Batch is a batch with its encoded columns.
type Batch struct {
	store.Batch
	Read       int64 // the version that it was read at
	Ended      int64 // 0: not terminal
	Doc        []byte
	Parameters []byte // nil: none
	Tags       []int64
}

// EncodeBatch truncates the times of b, counts its version up and encodes it. now is the end of a
// terminal batch that does not have one itself.
func EncodeBatch(b store.Batch, now time.Time) (row Batch, err error) {
	Truncate(&b.CreatedAt, &b.InProgressAt, &b.FinalizingAt, &b.CompletedAt, &b.FailedAt,
		&b.ExpiredAt, &b.CancellingAt, &b.CancelledAt, &b.Deadline, &b.StartBy)
	row.Read, row.Tags = b.Version, BatchTags(b)
	b.Version++
	row.Batch = b
	if b.State.Terminal() {
		at := b.EndedAt()
		if at.IsZero() {
			at = now
		}
		row.end(at)
	}
	if row.Doc, err = Encode(b); err == nil && b.Parameters != nil {
		row.Parameters, err = Encode(b.Parameters)
	}
	return row, err
}

// EncodeStoredBatch encodes a batch that moves here, at its own version.
func EncodeStoredBatch(b store.StoredBatch) (Batch, error) {
	b.Batch.Parameters = b.Parameters
	b.Version-- // which EncodeBatch counts up
	row, err := EncodeBatch(b.Batch, b.Ended)
	if row.Ended != 0 {
		row.end(b.Ended)
	}
	return row, err
}

// end sets the end. 0 would mean that the batch is not terminal.
func (b *Batch) end(at time.Time) { b.Ended = max(Micros(at), 1) }
