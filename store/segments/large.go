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

// AppendFrom implements [store.Journal]. The record has a segment of its own, which the caller's
// goroutine writes beside the group commit.
func (j *journal) AppendFrom(
	ctx context.Context, r store.Record, size int64, result func() io.Reader,
) error {
	if err := j.appendFrom(ctx, &r, size, result); err != nil {
		return j.wrap("append a large record to", err)
	}
	return nil
}

func (j *journal) appendFrom(
	ctx context.Context, r *store.Record, size int64, result func() io.Reader,
) error {
	if size > frame.MaxResult {
		return frame.ErrTooLarge
	}
	select {
	case j.js.large <- struct{}{}:
		defer func() { <-j.js.large }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	head, err := frame.HeaderOf(j.epoch, r, size, result())
	if err != nil {
		return err
	}
	if err := j.usable(); err != nil {
		return err
	}
	done, err := j.js.writeLarge(ctx, j, head, size, result)
	if err != nil {
		return err
	}
	if len(done.Fenced) > 0 {
		j.fenced()
		return store.ErrFenced
	}
	var one frame.Pending
	one.Count(r) // the result was not passed to Append, so it is not in Bytes
	j.succeed(0, one.Sum)
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
				Parts: []Part{{Chunk: j.id, Epoch: j.epoch, Length: length}}})
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
