package finish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// Finalizer writes the result files of batches that start no more lines, and ends them.
type Finalizer struct {
	*work.Session
	Metadata FinalizerStore
	Blobs    Blobs
	Places   Places // nil: batches whose results go to the storage of a profile do not end
	Buckets  Buckets
	Journals Journals
	Metrics  Metrics
	Expiry   func() time.Time // the time by which batches expire
	// RefusedFor is the time for which a bucket may refuse the results that are delivered to it.
	// 0: 10 minutes.
	RefusedFor time.Duration
}

// FinalizerStore holds batches, their chunks, and which blobs are in use.
type FinalizerStore interface {
	work.Batches
	FinishBatch(ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch,
		files []store.File) (store.Batch, error)
	Lock(ctx context.Context, o store.Owner, name string) (epoch int64, ok bool, err error)
	Unlock(ctx context.Context, o store.Owner, name string) error
	ClaimChunks(ctx context.Context, o store.Owner, batch, model string, n int,
		held []int) ([]store.Chunk, error)
	FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error
	ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error
	ReopenChunk(ctx context.Context, c store.Chunk) error
	Chunks(ctx context.Context, batch string) ([]store.Chunk, error)
	DropBlobs(ctx context.Context, expired string, keys ...string) (dropped []string, err error)
}

// Blobs holds the bytes of files.
type Blobs interface {
	work.Blobs
	Delete(ctx context.Context, key string) error
}

// Journals holds the results of chunks.
type Journals interface {
	work.JournalOpener
	store.JournalReader
}

// Finalize writes the result files of a batch of which no chunk is held, and ends it. After a crash
// the same files are written again, with the same ids. The names of blobs contain the epoch of the
// lock, and the files' rows are created together with the end, so a process that was suspended
// meanwhile replaces nothing and restores nothing.
func (fz *Finalizer) Finalize(ctx context.Context, r *work.Run, b store.Batch) error {
	if err := fz.tryResult(ctx, r, &b); err != nil {
		return err
	}
	lock := "finalize/" + b.ID
	epoch, ok, err := fz.Metadata.Lock(ctx, fz.Owner, lock)
	if err != nil {
		return err
	}
	if !ok {
		fz.Batches.AddAfter(b.ID, work.RetryEvery)
		return nil
	}
	defer func() { // a lock that stays ends with the owner's lease
		_ = fz.Metadata.Unlock(context.WithoutCancel(ctx), fz.Owner, lock)
	}()
	read := b
	if b, err = fz.Metadata.Batch(ctx, "", b.ID); err != nil {
		return err
	}
	// another process came first, or a user canceled the batch
	if b.State != read.State || b.Ending != read.Ending {
		fz.Batches.AddAfter(b.ID, 0)
		return nil
	}
	target, err := fz.targetOf(&b)
	if err != nil {
		return err
	}
	e := &ending{fz: fz, run: r, batch: b, lock: lock, epoch: epoch, target: target}
	return fz.finalizeLocked(ctx, e)
}

func (fz *Finalizer) finalizeLocked(ctx context.Context, e *ending) error {
	b, r := e.batch, e.run
	found, err := fz.gather(ctx, &b)
	if err != nil {
		return fmt.Errorf("gather results of batch %s: %w", b.ID, err)
	}
	if b.Ending == store.Completed && len(found.lost) > 0 {
		return fz.runAgain(ctx, b.ID, found.lost)
	}
	found.attempts += r.UnrecordedRequests()
	e.failures = r.Causes(found.failures)
	e.found, e.counts.Total = found, b.Counts.Total
	if err = e.write(ctx); err == nil {
		err = e.deliver(ctx)
	}
	ended := false
	if err == nil {
		ended, err = e.conclude(ctx)
	}
	if !ended {
		e.discard(context.WithoutCancel(ctx))
		return err
	}
	e.dropLeftovers(ctx)
	fz.dropInputs(ctx, &b)
	return fz.Blobs.Delete(ctx, work.OrderKey(b.ID))
}

// tryResult returns why no result file can be written now, on a full disk for example, before
// anything is locked, claimed or fenced for it.
func (fz *Finalizer) tryResult(ctx context.Context, r *work.Run, b *store.Batch) error {
	w, err := fz.Blobs.Create(ctx, work.OrderKey(b.ID))
	if err == nil {
		err = w.Abort()
	}
	if err != nil {
		return err
	}
	target, err := fz.targetOf(b)
	if err == nil && target.place != nil {
		_, err = target.place.List(ctx, store.ResultsOf(b.ID), "", 1)
	}
	if err != nil {
		return err
	}
	if err = fz.tryDelivery(ctx, b); err != nil {
		if _, err = fz.giveUp(r, b, err); err != nil {
			fz.Metrics.Delivered(DeliveryFailed)
		}
	}
	return err
}

// ending writes the result files of one batch and ends it.
type ending struct {
	fz      *Finalizer
	run     *work.Run
	batch   store.Batch // as read under the lock
	lock    string
	epoch   int64
	target  target
	found   *results
	outputs []store.Output
	counts  store.Counts
	notRun  int // lines of counts.Failed without an answer
	// failures are the most frequent causes of failed lines
	failures []store.Failure
	files    []store.File // whose bytes are committed
	delivery *store.Delivery
}

// write writes all result files.
func (e *ending) write(ctx context.Context) error {
	b := &e.batch
	src, err := work.OpenSource(ctx, e.fz.Blobs, b)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, batchfile.ErrDamaged) {
		return err
	}
	if src != nil {
		defer src.Close()
	}
	e.outputs = make([]store.Output, len(b.Outputs))
	for i, out := range b.Outputs {
		first, lines := 0, b.Counts.Total
		if out.Input >= 0 {
			first, lines = b.Inputs[out.Input].First, b.Inputs[out.Input].Lines
		}
		w := resultFiles{end: e, source: src}
		e.outputs[i], err = w.write(ctx, out, first, lines)
		w.close()
		if err != nil {
			return fmt.Errorf("write results of batch %s: %w", b.ID, err)
		}
		e.counts.Completed += w.completed
		e.counts.Failed += w.failed + w.notRun
		e.notRun += w.notRun
	}
	return nil
}

// conclude ends the batch and creates its files, in one step. It returns false if the batch has
// ended already, or is to end in another state now.
func (e *ending) conclude(ctx context.Context) (ended bool, err error) {
	for {
		b := e.ended()
		_, err = e.fz.Metadata.FinishBatch(ctx, e.fz.Owner, e.lock, e.epoch, b, e.files)
		if err == nil {
			e.fz.Metrics.Ended(b.State)
			e.fz.Ended(ctx, &b)
			e.fz.Batches.AddAfter(b.ID, 0)
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return false, fmt.Errorf("end batch %s: %w", b.ID, err)
		}
		// Another change came first: of the metadata, for example, or a cancellation.
		if b, err = e.fz.Metadata.Batch(ctx, "", b.ID); err != nil {
			return false, err
		}
		if b.State != e.batch.State || b.Ending != e.batch.Ending {
			e.fz.Batches.AddAfter(b.ID, 0)
			return false, nil
		}
		if b.Version == e.batch.Version { // so the conflict is about the files
			return false, fmt.Errorf("end batch %s: its result files were removed as orphans: %w",
				b.ID, store.ErrConflict)
		}
		e.batch = b
	}
}

// ended returns the batch in the state that it is to end in.
func (e *ending) ended() store.Batch {
	b := e.batch
	switch b.State = b.Ending; b.State {
	case store.Completed:
		b.CompletedAt = time.Now()
	case store.Expired:
		b.ExpiredAt = time.Now()
	case store.Failed:
		b.FailedAt = time.Now()
	default:
		b.State, b.CancelledAt = store.Cancelled, time.Now()
	}
	b.Outputs, b.Counts, b.Attempts = e.outputs, e.counts, e.found.attempts
	b.NotRun = e.notRun
	b.Usage, b.Failures, b.Delivery = &e.found.usage, e.failures, e.delivery
	b.Paused = false
	return b
}

// discardTimeout limits the time to remove files that are not used.
const discardTimeout = 5 * time.Second

// discard removes result files that are not used. The sweep of orphans removes those of the backend
// that it can't.
func (e *ending) discard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	keys := make([]string, len(e.files))
	for i, f := range e.files {
		keys[i] = f.BlobKey
	}
	err := store.RemoveBlobs(ctx, e.fz.Metadata, e.target, "", keys...)
	if away := new(store.StorageError); errors.As(err, &away) {
		return // what made this try fail; the one that succeeds removes them
	}
	if err != nil {
		e.fz.Log.WarnContext(ctx, "could not remove unused result files",
			"batch_id", e.batch.ID, "error", err)
	}
}
