package segments

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// errChanged means that a later reader of a result had other bytes.
var errChanged = errors.New("the result was different when it was read again")

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
	head := frame.AppendHeader(nil, frame.Record, j.epoch, r, size)
	sum := &summing{sum: frame.Checksum(head)}
	if n, err := io.Copy(sum, io.LimitReader(result(), size)); err != nil || n != size {
		return fmt.Errorf("read the result: %d of %d bytes: %w", n, size, cmpErr(err))
	}
	binary.LittleEndian.PutUint32(head[8:], sum.sum)
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
	var one pending
	one.count(r) // the result was not passed to Append, so it is not in Bytes
	j.succeed(0, one.sum)
	return nil
}

// cmpErr returns what ended a copy too early.
func cmpErr(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// writeLarge writes a record and registers it.
func (js *Journals) writeLarge(
	ctx context.Context, j *journal, head []byte, size int64, result func() io.Reader,
) (done Registered, err error) {
	length := int64(len(head)) + size
	for range keyTries {
		key := js.keys.next()
		sum := &summing{}
		start := time.Now()
		err = js.objects.Put(ctx, key.String(), length, func() io.Reader {
			sum.sum = frame.Checksum(head)
			return io.MultiReader(bytes.NewReader(head),
				io.TeeReader(io.LimitReader(result(), size), sum))
		})
		put := time.Since(start)
		if err == nil && sum.sum != frame.StoredChecksum(head) {
			err = errChanged
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

// summing adds what is written to a checksum.
type summing struct{ sum uint32 }

func (s *summing) Write(p []byte) (int, error) {
	s.sum = frame.Update(s.sum, p)
	return len(p), nil
}
