package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// order maps positions of a batch to line numbers. Chunks are ranges of positions. Most batches
// stay in input order; the order of others is a blob of line numbers.
type order struct{ blob store.Blob } // nil: position and line number are equal

// OrderKey returns the key of the blob that holds the order of a batch, if it has one.
func OrderKey(batch string) string { return "batches/" + batch + "/order" }

// lines fills into with the line numbers of the positions from first on.
func (o order) lines(first int, into []uint32) error {
	if o.blob == nil {
		for i := range into {
			into[i] = uint32(first + i)
		}
		return nil
	}
	raw := make([]byte, 4*len(into))
	if n, err := o.blob.ReadAt(raw, int64(4*first)); n < len(raw) {
		return fmt.Errorf("read order: %w", err)
	}
	for i := range into {
		into[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return nil
}

func (o order) close() {
	if o.blob != nil {
		o.blob.Close()
	}
}

func openOrder(ctx context.Context, blobs Blobs, batch string) (order, error) {
	blob, err := blobs.Open(ctx, OrderKey(batch))
	if errors.Is(err, store.ErrNotFound) {
		return order{}, nil
	}
	return order{blob: blob}, err
}

func writeOrder(ctx context.Context, blobs Blobs, batch string, numbers []uint32) error {
	w, err := blobs.Create(ctx, OrderKey(batch))
	if err != nil {
		return err
	}
	defer w.Abort()
	raw := make([]byte, 0, 64<<10)
	for i, n := range numbers {
		raw = binary.LittleEndian.AppendUint32(raw, n)
		if len(raw) == cap(raw) || i == len(numbers)-1 {
			if _, err := w.Write(raw); err != nil {
				return err
			}
			raw = raw[:0]
		}
	}
	return w.Commit(ctx)
}

// inputOrder reports whether every line number equals its position.
func inputOrder(numbers []uint32) bool {
	for i, n := range numbers {
		if n != uint32(i) {
			return false
		}
	}
	return true
}
