package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// keepBatch looks at a batch and does the next thing that its state calls for.
func (s *session) keepBatch(ctx context.Context, id string) {
	b, err := s.deps.Metadata.Batch(ctx, "", id)
	if errors.Is(err, store.ErrNotFound) {
		s.dismiss(id)
		return
	}
	if err == nil {
		switch {
		case b.State == store.Validating:
			err = s.admit(ctx, b)
		case b.State == store.InProgress:
			err = s.advance(ctx, b)
		case b.State.Terminal():
			s.dismiss(id)
		default: // finalizing, cancelling
			if err = s.end(ctx, b); err == nil {
				s.unhindered(id)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		if r := s.run(id); r != nil {
			r.waitFor(reasonOf(err))
		}
		if !errors.Is(err, store.ErrConflict) { // somebody was faster: look again
			s.log.WarnContext(ctx, "could not bring a batch forward, trying again", "batch_id", id,
				"error", err)
		}
		s.keep.addAfter(id, retryEvery)
	}
}

// unhindered notes that nothing keeps a batch any more from being brought forward.
func (s *session) unhindered(id string) {
	if r := s.run(id); r != nil {
		r.waitFor(plan.Flowing)
	}
}

// deadlineLook is how long a deadline isn't looked at. The time that batches expire by may make a
// jump that is confirmed late.
const deadlineLook = 15 * time.Minute

// advance takes a hand in a running batch, and ends it when it is done or its time is over.
func (s *session) advance(ctx context.Context, b store.Batch) error {
	if !b.Deadline.IsZero() && !s.deps.Expiry().Before(b.Deadline) {
		return s.finalizeAs(ctx, b.ID, store.Expired, "", "")
	}
	r, isNew := s.adopt(b)
	if isNew {
		put := planned(&b)
		put.Models = plannedModels(&b, s.leftOf(&b))
		s.inbox.put(plan.BatchPut{Batch: put})
	} else {
		s.inbox.put(plan.BatchPut{Batch: planned(&b)})
	}
	// a new one is asked about only if a crash may have come just before its end
	if !isNew || s.noneLeft(&b) {
		if done, err := s.allDone(ctx, r); err != nil || done {
			return errors.Join(err, s.completeIf(ctx, b.ID, done))
		}
	}
	if !b.Deadline.IsZero() {
		s.keep.addAfter(b.ID, min(b.Deadline.Sub(s.deps.Expiry()), deadlineLook)+time.Millisecond)
	}
	return nil
}

func (s *session) completeIf(ctx context.Context, id string, done bool) error {
	if !done {
		return nil
	}
	return s.finalizeAs(ctx, id, store.Completed, "", "")
}

// allDone reports whether every chunk of a run's batch is done. It asks the store only when this
// dispatcher has none in hand.
func (s *session) allDone(ctx context.Context, r *run) (bool, error) {
	r.mu.Lock()
	busy := len(r.chunks)+len(r.reading) > 0
	r.mu.Unlock()
	if busy {
		return false, nil
	}
	n, err := s.deps.Metadata.CountChunks(ctx, s.lease.owner, r.id, nil)
	return err == nil && n.Free == 0 && n.Claimed == 0, err
}

// adopt finds or makes the run of a batch and tells it what was read last.
func (s *session) adopt(b store.Batch) (r *run, isNew bool) {
	s.mu.Lock()
	r = s.runs[b.ID]
	if r != nil && r.outlivedBy(b) {
		r.close()
		r = nil
	}
	if r == nil {
		r, isNew = s.newRun(b), true
		s.runs[b.ID] = r
	}
	s.mu.Unlock()
	b.Metadata, b.OptionsJSON, b.Errors = nil, nil, nil // which are for users, and large
	r.mu.Lock()
	if b.Version >= r.batch.Version {
		r.batch = b
	}
	r.mu.Unlock()
	return r, isNew
}

// dismiss forgets a batch that has ended or is gone.
func (s *session) dismiss(id string) {
	r := s.run(id)
	if r == nil {
		return
	}
	if !s.quiet(r, 0) {
		s.keep.addAfter(id, retryEvery)
		return
	}
	s.mu.Lock()
	delete(s.runs, id)
	s.mu.Unlock()
	r.close()
}

// quiet stops the run's lines and reports whether nothing of it is in hand any more.
func (s *session) quiet(r *run, grace time.Duration) bool {
	r.mu.Lock()
	first := !r.stopped
	r.stopped = true
	rest := len(r.chunks) + len(r.reading)
	r.mu.Unlock()
	if first {
		s.inbox.put(stopRun{run: r, grace: grace})
	}
	return rest == 0
}

// stop ends a running batch before its time: what is done is kept, and code and reason tell the
// user why.
func (s *session) stop(ctx context.Context, id, code, reason string) error {
	s.log.InfoContext(ctx, "stopping a batch", "batch_id", id, "code", code)
	return s.finalizeAs(ctx, id, store.Failed, code, reason)
}

func (s *session) stopLogged(id, code, reason string) {
	for s.work.Err() == nil {
		err := s.stop(s.work, id, code, reason)
		if err == nil {
			return
		}
		s.log.Warn("could not stop a batch, trying again", "batch_id", id, "error", err)
		select {
		case <-s.work.Done():
		case <-time.After(retryEvery):
		}
	}
}

// finalizeAs moves a running batch to finalizing, on its way to the given end. Doing it again, or
// too late, does nothing.
func (s *session) finalizeAs(
	ctx context.Context, id string, ending store.State, code, reason string,
) error {
	_, err := store.Modify(ctx, s.deps.Metadata, "", id, func(b *store.Batch) error {
		if b.State != store.InProgress {
			return errSettled
		}
		b.State, b.Ending, b.Reason = store.Finalizing, ending, reason
		b.FinalizingAt = time.Now()
		if code != "" {
			b.Errors = append(b.Errors, batchfile.Fault{Code: code, Message: reason})
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSettled) {
		return fmt.Errorf("move batch %s to finalizing: %w", id, err)
	}
	s.keep.add(id)
	return nil
}

// errSettled says that a batch is past the point in question.
var errSettled = errors.New("settled already")

// end brings a batch that starts no more lines to its end: it waits for all claims to end and
// writes the result files.
func (s *session) end(ctx context.Context, b store.Batch) error {
	r, _ := s.adopt(b)
	grace := s.cfg.CancelGrace
	if b.Ending == store.Expired || b.Ending == store.Completed {
		grace = 0
	}
	if !s.quiet(r, grace) {
		return nil // the last chunk that is put back calls again
	}
	if b.State == store.Cancelling && len(b.Inputs) > 0 && b.InProgressAt.IsZero() {
		// Cancelled before it was laid out: there is nothing to wait for, but the lines are to be
		// listed.
		if err := s.layOut(ctx, &b); err != nil {
			return err
		}
	}
	n, err := s.deps.Metadata.CountChunks(ctx, s.lease.owner, b.ID, r.inHand())
	if err != nil {
		return err
	}
	if n.Claimed > 0 { // other dispatchers see the same state and let go
		s.keep.addAfter(b.ID, 200*time.Millisecond)
		return nil
	}
	return s.finalize(ctx, r, b)
}
