package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// reconciler brings batches from state to state: it reads a batch and does the next thing that its
// state requires. Every step can be interrupted and done again, by a retry, by a restart or by
// another process.
type reconciler struct {
	expiry      func() time.Time     // the time by which batches expire
	pollWait    func() time.Duration // until the next poll
	retryWait   time.Duration        // until the next poll after one that failed
	wake        chan struct{}        // capacity 1: poll now
	cancelGrace func() time.Duration // for lines in flight of a batch; see Config.CancelGrace
	metrics     *metrics
	targets     *targets

	fleet     *lead.Fleet
	claimer   *claim.Claimer
	finisher  *finish.Finisher
	shown     *shownBatches
	remaining *work.Remaining
	catalog   *catalog
	loading   loading
	admitter  *claim.Admitter   // its first step
	finalizer *finish.Finalizer // its last step
	*stopper                    // the step between
}

// poll enqueues batches that are new or changed: all of them first, then those that changed since.
// It calls ready each time when all are enqueued.
func (rc *reconciler) poll(ctx context.Context, ready func()) {
	const page = 500
	var cursor store.Cursor
	for {
		var ids []string
		var next store.Cursor
		var err error
		began := time.Now()
		if cursor == "" {
			err = rc.remaining.Count(ctx)
		}
		if err == nil {
			ids, next, err = rc.metadata.ChangedBatches(ctx, cursor, page)
		}
		if errors.Is(err, store.ErrBadCursor) {
			cursor = ""
		}
		wait := rc.pollWait()
		if err != nil {
			wait = rc.retryWait
			if ctx.Err() == nil {
				rc.Log.WarnContext(ctx, "could not poll for changed batches", "error", err)
			}
		} else {
			cursor = next
			rc.loading.add(ids)
			for _, id := range ids {
				rc.Batches.Add(id)
			}
			if len(ids) == page {
				continue
			}
			rc.metrics.feed.readUntil(began)
			rc.loading.all()
			ready()
		}
		select {
		case <-ctx.Done():
			return
		case <-rc.wake:
		case <-time.After(wait):
		}
	}
}

// reconcile reads a batch and does the next thing that its state requires.
func (rc *reconciler) reconcile(ctx context.Context, id string) {
	b, err := rc.metadata.Batch(ctx, "", id)
	if errors.Is(err, store.ErrNotFound) {
		rc.shown.forget(id)
		rc.targets.forget(id)
		rc.dismiss(id)
		rc.loading.done(id)
		return
	}
	if err == nil {
		rc.shown.see(&b)
		rc.targets.see(&b)
		if b.State != store.Validating && b.State != store.InProgress {
			rc.loading.done(id) // it starts no more lines
		}
		switch {
		case b.State == store.Validating:
			var failed bool
			if failed, err = rc.failUnserved(ctx, &b); err == nil && !failed {
				err = rc.admitter.Admit(ctx, b)
			}
			if err == nil {
				rc.Batches.Add(id)
			}
		case b.State == store.InProgress:
			err = rc.advance(ctx, b)
		case b.State.Terminal():
			rc.dismiss(id)
		default: // finalizing, cancelling
			if err = rc.end(ctx, b); err == nil {
				rc.setBlocked(id, plan.Flowing)
			}
		}
	}
	if err == nil {
		rc.loading.done(id)
	}
	var away *store.StorageError
	if errors.As(err, &away) && ctx.Err() == nil {
		rc.Batches.AddAfter(id, rc.waitForStorage(ctx, id, away))
		return
	}
	if err != nil && ctx.Err() == nil {
		rc.setBlocked(id, work.ReasonOf(err))
		if !errors.Is(err, store.ErrConflict) { // a conflict: another change came first
			rc.Log.WarnContext(ctx, "could not reconcile a batch, trying again", "batch_id", id,
				"error", err)
		}
		rc.Batches.AddAfter(id, work.RetryEvery)
	}
}

// waitForStorage notes that a storage does not take a batch's results, logs what is new of that,
// and returns the time until the next try.
func (rc *reconciler) waitForStorage(
	ctx context.Context, id string, away *store.StorageError,
) time.Duration {
	wait, changed := work.RetryEvery, true
	if r := rc.Runs.Get(id); r != nil {
		wait, changed = r.WaitForStorage(away.Waiting())
	}
	if changed {
		message := "the storage of a batch's profile does not take its results, trying again " +
			"until it does"
		if away.Delivery {
			message = "the bucket of a batch's output_url does not take its results, trying again"
		}
		rc.Log.WarnContext(ctx, message, "batch_id", id, "error", away)
	}
	return wait
}

func (rc *reconciler) setBlocked(id string, reason plan.Reason) {
	if r := rc.Runs.Get(id); r != nil {
		r.SetBlocked(reason)
	}
}

// deadlineCheck is the longest time between two checks of a deadline. The time by which batches
// expire may make a jump that is confirmed late.
const deadlineCheck = 15 * time.Minute

// advance works on a batch in progress, and ends it when it is complete or its time is over.
func (rc *reconciler) advance(ctx context.Context, b store.Batch) error {
	if !b.Deadline.IsZero() && !rc.expiry().Before(b.Deadline) {
		return rc.finalizeAs(ctx, b.ID, store.Expired, "")
	}
	r := rc.Runs.Update(b)
	// after the update: a runner that answers now has all runs reconciled
	if stopped, err := rc.stopUnserved(ctx, &b); err != nil || stopped {
		return err
	}
	put := rc.Runs.Plan(&b)
	isNew := !r.Planned && !r.Stopped()
	if isNew && r.Again { // the last count may be from before the chunks were reopened
		if err := rc.remaining.Count(ctx); err != nil {
			return err
		}
	}
	if isNew {
		put.Models = work.PlanModels(&b, rc.remaining.Of(&b))
		rc.loading.continues(b.ID, b.Lines())
	}
	rc.Inbox.Event(plan.BatchPut{Batch: put})
	r.Planned = true
	rc.loading.done(b.ID)
	if found, now := rc.loading.tell(); now {
		rc.Log.InfoContext(ctx, "going on with the batches in the store", "batches", found.batches,
			"lines", found.lines)
	}
	if isNew {
		rc.fleet.NewDemand()
	}
	if err := rc.checkStart(ctx, r, &b); err != nil {
		return err
	}
	// The store counts the chunks of a new one only if a crash may have come just before its end.
	if !isNew || rc.remaining.None(&b) {
		if done, err := rc.allDone(ctx, r); err != nil || done {
			return errors.Join(err, rc.completeIf(ctx, b.ID, done))
		}
	}
	if after := rc.nextCheck(r, &b); after > 0 {
		rc.Batches.AddAfter(b.ID, after)
	}
	return nil
}

func (rc *reconciler) completeIf(ctx context.Context, id string, done bool) error {
	if !done {
		return nil
	}
	return rc.finalizeAs(ctx, id, store.Completed, "")
}

// allDone reports whether every chunk of a run's batch is done. It asks the store only when this
// process holds none.
func (rc *reconciler) allDone(ctx context.Context, r *work.Run) (bool, error) {
	if !r.Idle() {
		return false, nil
	}
	n, err := rc.metadata.CountChunks(ctx, rc.Owner, r.ID, nil)
	return err == nil && n.Free == 0 && n.Claimed == 0, err
}

// dismiss removes the run of a batch that has ended or is gone.
func (rc *reconciler) dismiss(id string) {
	r := rc.Runs.Get(id)
	if r == nil {
		return
	}
	if !rc.quiet(r, 0) {
		rc.Batches.AddAfter(id, work.RetryEvery)
		return
	}
	rc.Runs.Remove(id)
	r.Close()
}

// quiet stops the run's lines and reports whether no chunk of it is held any more.
func (rc *reconciler) quiet(r *work.Run, grace time.Duration) bool {
	first, held := r.Stop()
	switch {
	case first:
		rc.Inbox.Put(work.BatchStopped{Run: r, Grace: grace})
		rc.claimer.AbandonAhead(r, func(string) bool { return true })
		rc.finisher.Hurry()
	case grace == 0:
		r.Evict() // the grace that it had is taken back
	}
	return held == 0
}

// graceOf returns the time in which the lines in flight of a batch that starts no more lines may
// finish.
func (rc *reconciler) graceOf(b *store.Batch) time.Duration {
	if b.Ending == store.Failed || b.Ending == store.Cancelled && b.FinishInFlight {
		return rc.cancelGrace()
	}
	return 0
}

// end brings a batch that starts no more lines to its end: it waits for all claims to end and
// writes the result files.
func (rc *reconciler) end(ctx context.Context, b store.Batch) error {
	r := rc.Runs.Update(b)
	if !rc.quiet(r, rc.graceOf(&b)) {
		return nil // the release of the last chunk enqueues the batch again
	}
	if b.State == store.Cancelling && len(b.Inputs) > 0 && b.InProgressAt.IsZero() {
		// Canceled before it was cut into chunks: no claim can be open, but the lines are to be
		// listed.
		if err := rc.admitter.Cut(ctx, &b); err != nil {
			return err
		}
	}
	n, err := rc.metadata.CountChunks(ctx, rc.Owner, b.ID, r.HeldIndexes())
	if err != nil {
		return err
	}
	if n.Claimed > 0 { // other processes read the same state and release their chunks
		rc.Batches.AddAfter(b.ID, 200*time.Millisecond)
		return nil
	}
	return rc.finalizer.Finalize(ctx, r, b)
}
