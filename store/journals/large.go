package journals

import (
	"context"
	"errors"
	"io"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// Large limits the large records of a medium that are written at the same time.
type Large chan struct{}

// NewLarge returns a limit.
func NewLarge() Large { return make(Large, 2) }

// AppendFrom appends a record as [store.Journal] has it: the caller's goroutine writes it beside
// the group commit. write gets the frame's header, which the result follows, and makes the record
// durable.
func (l *Log) AppendFrom(
	ctx context.Context, large Large, r *store.Record, size int64, result func() io.Reader,
	write func(head []byte) error,
) error {
	if size > frame.MaxResult {
		return frame.ErrTooLarge
	}
	select {
	case large <- struct{}{}:
		defer func() { <-large }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	head, err := frame.HeaderOf(l.Epoch, r, size, result())
	if err == nil {
		err = l.Usable()
	}
	if err == nil {
		err = write(head)
	}
	if err != nil {
		if errors.Is(err, store.ErrFenced) {
			l.Fenced()
		}
		return err
	}
	var one frame.Pending
	one.Count(r) // the result was not passed to Append, so it is not in Bytes
	one.Sum.Written += size
	l.Succeed(0, one.Sum)
	return nil
}
