package segments

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// AppendFrom implements [store.Journal]. The record has a segment of its own.
func (j *journal) AppendFrom(
	ctx context.Context, r store.Record, size int64, result func() io.Reader,
) error {
	err := j.Log.AppendFrom(ctx, j.js.large, &r, size, result, func(head []byte) error {
		done, err := j.js.writeLarge(ctx, j, head, size, result)
		if err == nil && len(done.Fenced) > 0 {
			err = store.ErrFenced
		}
		return err
	})
	if err != nil {
		return j.Wrap("append a large record to", err)
	}
	return nil
}

// writeLarge writes a record and registers it.
func (js *Journals) writeLarge(
	ctx context.Context, j *journal, head []byte, size int64, result func() io.Reader,
) (done Registered, err error) {
	length := int64(len(head)) + size
	for range keyTries {
		key := js.keys.next()
		var sum frame.Sum
		start := time.Now()
		err = js.objects.Put(ctx, key.String(), length, func() io.Reader {
			sum = frame.Sum(frame.Checksum(head))
			return io.MultiReader(bytes.NewReader(head),
				io.TeeReader(io.LimitReader(result(), size), &sum))
		})
		put := time.Since(start)
		if err == nil && uint32(sum) != frame.StoredChecksum(head) {
			err = frame.ErrChanged
		}
		if err == nil {
			start = time.Now()
			done, err = js.registry.Register(ctx, Segment{Key: key, Bytes: length,
				Parts: []Part{{Chunk: j.ID, Epoch: j.Epoch, Length: length}}})
		}
		js.opts.Observe(Attempt{Records: 1, Bytes: int(length), Put: put,
			Register: time.Since(start), Err: err})
		if !errors.Is(err, ErrSwept) && !errors.Is(err, store.ErrExists) {
			return done, err
		}
		if err := js.keys.refresh(ctx, js.registry); err != nil {
			return done, err
		}
	}
	return done, err
}
