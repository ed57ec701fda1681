package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

var errJournalClosed = errors.New("journal is closed")

// errTorn means that another process wrote between the written frames. They are written again.
var errTorn = errors.New("append was torn by another writer")

// journal implements [store.Journal].
type journal struct {
	id        store.ChunkID
	epoch     int64
	commits   *committer
	reserve   *reserve
	presence  *presence
	committed func(store.Commit)
	forget    func() // removes the journal from the open ones

	mu       sync.Mutex
	active   frame.Pending
	final    error // reason why nothing can be appended any more; nil: it can
	queued   bool  // the committer has the journal in a list, or commits it
	appended int64 // records since Open
	durable  int64
	attempts int64 // to write records; the last one may be under way
	waiting  []flush

	// io guards the fields below. It is locked before mu.
	io             sync.Mutex
	file           file
	size           int64 // of the file, as last checked
	writing        frame.Pending
	lastRefusal    string // as reported last; empty after a success
	fencedReported bool
	closed         bool
}

var _ store.Journal = (*journal)(nil)

// flush is a caller that waits for the first target records.
type flush struct {
	target  int64
	attempt int64 // the last one that began before
	done    chan error
}

// Append implements [store.Journal].
func (j *journal) Append(_ context.Context, r store.Record) error {
	if frame.ResultSize(&r) > frame.MaxResult {
		return j.wrap("append to", frame.ErrTooLarge)
	}
	j.mu.Lock()
	if j.final != nil {
		defer j.mu.Unlock()
		return j.wrap("append to", j.final)
	}
	if j.active.Frames == nil {
		j.active.Frames = j.commits.takeBuffer()
	}
	before := len(j.active.Frames)
	j.active.Add(j.epoch, &r)
	grown := len(j.active.Frames) - before
	j.appended++
	j.enqueue()
	j.mu.Unlock()
	j.commits.count(grown)
	return nil
}

// enqueue requests a commit. mu is held.
func (j *journal) enqueue() {
	if !j.queued {
		j.queued = true
		j.commits.add(j)
	}
}

// Flush implements [store.Journal].
func (j *journal) Flush(ctx context.Context) error {
	if err := j.flush(ctx); err != nil {
		return j.wrap("flush", err)
	}
	return nil
}

func (j *journal) flush(ctx context.Context) error {
	j.mu.Lock()
	if j.durable == j.appended || j.final != nil {
		defer j.mu.Unlock()
		return j.final
	}
	f := flush{target: j.appended, attempt: j.attempts, done: make(chan error, 1)}
	j.waiting = append(j.waiting, f)
	j.enqueue()
	j.mu.Unlock()

	j.commits.force()
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [store.Journal].
func (j *journal) Close(ctx context.Context) error {
	err := j.flush(ctx)
	j.forget()
	j.io.Lock()
	defer j.io.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	j.end(errJournalClosed)
	err = errors.Join(err, j.file.Close())
	if err != nil {
		return j.wrap("close", err)
	}
	return nil
}

// fence ends the journal because a newer claim has opened the chunk. The next round notifies its
// owner.
func (j *journal) fence() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.final == nil {
		j.final = store.ErrFenced
		j.enqueue()
	}
}

// commit makes the appended records durable. It reports whether the medium refused them, so that
// the committer tries again.
func (j *journal) commit() (refused bool) {
	if !j.io.TryLock() {
		// A large record is being written. The other journals of the round must not wait for it.
		j.again()
		return false
	}
	defer j.io.Unlock()
	if j.closed {
		return false
	}
	target, err := j.collect()
	if err == nil && len(j.writing.Frames) > 0 {
		err = j.write()
	}
	switch {
	case err == nil:
		j.lastRefusal = ""
		if sum := j.writing.Sum; sum.Records > 0 {
			j.recycle()
			j.succeed(target)
			j.committed(sum)
		}
		return j.proceed()
	case errors.Is(err, store.ErrFenced):
		j.end(store.ErrFenced)
		j.reportFenced()
		return false
	default:
		if reason := err.Error(); reason != j.lastRefusal {
			j.lastRefusal = reason
			j.committed(store.Commit{Err: err})
		}
		j.refuse(err)
		return true
	}
}

// again adds the journal to the next round.
func (j *journal) again() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.enqueueAgain()
}

func (j *journal) enqueueAgain() {
	j.queued = false
	j.enqueue()
}

// collect adds the appended frames to those that must still be written, and returns the number of
// records up to there.
func (j *journal) collect() (target int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts++
	if len(j.writing.Frames) == 0 {
		j.writing, j.active = j.active, frame.Pending{}
	} else {
		j.writing.Frames = append(j.writing.Frames, j.active.Frames...)
		j.writing.Sum.Records += j.active.Sum.Records
		j.writing.Sum.Completed += j.active.Sum.Completed
		j.writing.Sum.Failed += j.active.Sum.Failed
		j.writing.Sum.Bytes += j.active.Sum.Bytes
		j.writing.Sum.Usage.Add(j.active.Sum.Usage)
		j.active = frame.Pending{Frames: j.active.Frames[:0]}
	}
	return j.appended, j.final
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
		if s.Frame.Epoch > j.epoch {
			fenced = true
			break
		}
		if s.Frame.Kind == frame.Record && s.Frame.Epoch == j.epoch {
			ours++
		}
	}
	if s.Err != nil {
		return s.Err
	}
	j.size = s.To // a frame that another process is still writing is read again
	switch {
	case ours >= frames && fenced:
		j.fence() // after the frames that were written
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

// recycle returns the buffer of the written frames.
func (j *journal) recycle() {
	j.commits.returnBuffer(j.writing.Frames)
	j.writing = frame.Pending{}
}

// succeed ends the waits for records that are durable now.
func (j *journal) succeed(target int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.durable = target
	j.resolve(func(f flush) (error, bool) { return nil, f.target <= target })
}

// refuse ends the waits that began before the attempt with its error. The others, which may have
// begun after the medium recovered, have requested another attempt.
func (j *journal) refuse(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resolve(func(f flush) (error, bool) { return err, f.attempt < j.attempts })
}

// proceed requests another commit if more records were appended meanwhile.
func (j *journal) proceed() (refused bool) {
	j.mu.Lock()
	fenced := j.final != nil
	j.queued = false
	if !fenced && len(j.active.Frames) > 0 {
		j.enqueue()
		if len(j.waiting) > 0 {
			j.commits.force()
		}
	}
	j.mu.Unlock()
	if fenced {
		j.end(store.ErrFenced)
		j.reportFenced()
	}
	return false
}

// end drops the records that are not durable, and accepts no more.
func (j *journal) end(reason error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.final = reason
	j.queued = false
	j.active, j.writing = frame.Pending{}, frame.Pending{}
	j.resolve(func(flush) (error, bool) { return reason, true })
}

// reportFenced notifies the owner, once, that the journal was fenced.
func (j *journal) reportFenced() {
	if !j.fencedReported {
		j.fencedReported = true
		j.committed(store.Commit{Err: j.wrap("commit", store.ErrFenced)})
	}
}

// resolve ends the waits for which result returns true, with its error. mu is held.
func (j *journal) resolve(result func(flush) (error, bool)) {
	kept := j.waiting[:0]
	for _, f := range j.waiting {
		if err, ok := result(f); ok {
			f.done <- err
		} else {
			kept = append(kept, f)
		}
	}
	clear(j.waiting[len(kept):])
	j.waiting = kept
}

func (j *journal) wrap(operation string, err error) error {
	return fmt.Errorf("%s journal %d of batch %s: %w", operation, j.id.Index, j.id.Batch, err)
}
