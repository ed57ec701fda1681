package disk

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
	"github.com/tidefill/tidefill/store/journals"
)

// errTorn means that another process wrote between the written frames. They are written again.
var errTorn = errors.New("append was torn by another writer")

// journal implements [store.Journal].
type journal struct {
	journals.Log
	open     *journals.Writers
	commits  *committer
	reserve  *reserve
	presence *presence

	// io guards the fields below. It is locked before the Log's locks.
	io      sync.Mutex
	file    file
	size    int64 // of the file, as last checked
	writing frame.Pending
}

var _ store.Journal = (*journal)(nil)

// Add implements [journals.Queue].
func (j *journal) Add() { j.commits.add(j) }

// Force implements [journals.Queue].
func (j *journal) Force() { j.commits.force() }

// Buffer implements [journals.Queue].
func (j *journal) Buffer() []byte { return j.commits.takeBuffer() }

// Drop implements [journals.Queue].
func (j *journal) Drop(frames []byte) { j.commits.returnBuffer(frames) }

// Append implements [store.Journal].
func (j *journal) Append(_ context.Context, r store.Record) error {
	if frame.ResultSize(&r) > frame.MaxResult {
		return j.Wrap("append to", frame.ErrTooLarge)
	}
	size, err := j.Log.Append(&r)
	if err != nil {
		return j.Wrap("append to", err)
	}
	j.commits.count(size)
	return nil
}

// Close implements [store.Journal].
func (j *journal) Close(ctx context.Context) error {
	err := j.Wait(ctx)
	j.open.Forget(&j.Log)
	j.io.Lock()
	defer j.io.Unlock()
	if !j.Shut() {
		return nil
	}
	j.writing = frame.Pending{}
	if err = errors.Join(err, j.file.Close()); err != nil {
		return j.Wrap("close", err)
	}
	return nil
}

// commit makes the appended records durable. It reports whether the medium refused them, so that
// the committer tries again.
func (j *journal) commit() (refused bool) {
	if !j.io.TryLock() {
		// A large record is being written. The other journals of the round must not wait for it.
		j.Again()
		return false
	}
	defer j.io.Unlock()
	if errors.Is(j.Usable(), journals.ErrClosed) {
		return false
	}
	pending, target, _, err := j.Take(math.MaxInt, true)
	j.collect(pending)
	if err == nil && len(j.writing.Frames) > 0 {
		err = j.write()
	}
	switch {
	case err == nil:
		sum := j.writing.Sum
		j.commits.returnBuffer(j.writing.Frames)
		j.writing = frame.Pending{}
		j.Succeed(target, sum)
		if j.Proceed() {
			j.fenced()
		}
	case errors.Is(err, store.ErrFenced):
		j.fenced()
	default:
		j.Refuse(err, false)
		return true
	}
	return false
}

// collect adds records to those that must still be written.
func (j *journal) collect(p frame.Pending) {
	if len(j.writing.Frames) == 0 {
		j.writing = p
		return
	}
	j.writing.Frames = append(j.writing.Frames, p.Frames...)
	j.commits.returnBuffer(p.Frames)
	j.writing.Sum.Records += p.Sum.Records
	j.writing.Sum.Completed += p.Sum.Completed
	j.writing.Sum.Failed += p.Sum.Failed
	j.writing.Sum.Bytes += p.Sum.Bytes
	j.writing.Sum.Usage.Add(p.Sum.Usage)
}

// fenced ends the journal because its chunk has a newer claim. io is held.
func (j *journal) fenced() {
	j.Fenced()
	j.writing = frame.Pending{}
}

// write makes the frames of j.writing durable. After an error j.writing has the frames that are
// not.
func (j *journal) write() error {
	if err := errors.Join(j.presence.check(),
		j.reserve.check(int64(len(j.writing.Frames)))); err != nil {
		return err
	}
	n, err := j.file.Write(j.writing.Frames)
	if n > 0 {
		// Also after a short write: its complete frames count if they are durable, and are not
		// written again.
		if syncErr := j.file.Sync(); syncErr != nil {
			j.size += int64(n)
			return errors.Join(err, syncErr)
		}
	}
	size, frames := completeFrames(j.writing.Frames[:n])
	if checkErr := j.check(int64(n), frames); checkErr != nil {
		return errors.Join(err, checkErr)
	}
	j.writing.Frames = j.writing.Frames[:copy(j.writing.Frames, j.writing.Frames[size:])]
	if err == nil && len(j.writing.Frames) > 0 {
		err = io.ErrShortWrite
	}
	return err
}

// check verifies that the n bytes just written, which hold the given number of complete frames, are
// not behind the fence of a newer claim. It reads the file only if that has grown by more.
func (j *journal) check(n int64, frames int) error {
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	if size == j.size+n {
		j.size = size
		return nil
	}
	s := frame.NewScanner(j.file, j.size, size)
	ours, fenced := 0, false
	for s.Next() {
		if s.Frame.Epoch > j.Epoch {
			fenced = true
			break
		}
		if s.Frame.Kind == frame.Record && s.Frame.Epoch == j.Epoch {
			ours++
		}
	}
	if s.Err != nil {
		return s.Err
	}
	j.size = s.To // a frame that another process is still writing is read again
	switch {
	case ours >= frames && fenced:
		j.Fence() // after the frames that were written
		return nil
	case fenced:
		return store.ErrFenced
	case ours < frames:
		return errTorn
	}
	return nil
}

// completeFrames returns the size and number of the complete frames at the start of b, which the
// journal has encoded.
func completeFrames(b []byte) (size, frames int) {
	for len(b)-size >= frame.PrefixSize {
		n, ok := frame.Size(b[size:])
		if !ok || n > int64(len(b)-size) {
			break
		}
		size += int(n)
		frames++
	}
	return size, frames
}
