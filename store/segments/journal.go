package segments

import (
	"context"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
	"github.com/tidefill/tidefill/store/journals"
)

// journal implements [store.Journal].
type journal struct {
	journals.Log
	js *Journals
}

var _ store.Journal = (*journal)(nil)

// Add implements [journals.Queue].
func (j *journal) Add() { j.js.commits.add(j) }

// Force implements [journals.Queue].
func (j *journal) Force() { j.js.commits.force() }

// Buffer implements [journals.Queue]: a segment keeps what it is made of.
func (j *journal) Buffer() []byte { return nil }

// Drop implements [journals.Queue].
func (j *journal) Drop(frames []byte) { j.js.queue.free(int64(len(frames))) }

// Append implements [store.Journal].
func (j *journal) Append(ctx context.Context, r store.Record) error {
	if err := j.append(ctx, &r); err != nil {
		return j.Wrap("append to", err)
	}
	return nil
}

func (j *journal) append(ctx context.Context, r *store.Record) error {
	result := frame.ResultSize(r)
	if result > frame.MaxResult {
		return frame.ErrTooLarge
	}
	size := frame.EmptySize + result
	for {
		full := j.js.queue.take(size)
		if full == nil {
			break
		}
		if err := j.Usable(); err != nil {
			return err
		}
		j.js.commits.force()
		if err := wait(ctx, full); err != nil {
			return err
		}
	}
	if _, err := j.Log.Append(r); err != nil {
		j.js.queue.free(size)
		return err
	}
	j.js.commits.count(1, int(size))
	return nil
}

// Close implements [store.Journal].
func (j *journal) Close(ctx context.Context) error {
	err := j.Wait(ctx)
	j.js.open.Forget(&j.Log)
	if j.Shut() && err != nil {
		return j.Wrap("close", err)
	}
	return nil
}
