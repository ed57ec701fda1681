package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// checkStart stores when the first line of a batch was sent, and whether its StartBy was missed,
// and reports a miss once.
func (rc *reconciler) checkStart(ctx context.Context, r *work.Run, b *store.Batch) error {
	sent := r.FirstStarted()
	if b.StartBy.IsZero() || !b.FirstSentAt.IsZero() ||
		sent.IsZero() && (b.StartMissed || rc.expiry().Before(b.StartBy)) {
		return nil
	}
	missed := false
	stored, is, err := work.ModifyIf(ctx, rc.metadata, b.ID, func(b *store.Batch) bool {
		missed = !b.StartMissed && (sent.IsZero() || sent.After(b.StartBy))
		if !missed && (sent.IsZero() || !b.FirstSentAt.IsZero()) {
			return false // another process has stored it
		}
		b.StartMissed = b.StartMissed || missed
		if b.FirstSentAt.IsZero() {
			b.FirstSentAt = sent
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("store the start of batch %s: %w", b.ID, err)
	}
	if missed && is {
		rc.metrics.startsMissed.Inc()
		rc.Log.WarnContext(ctx, "start_by missed: no line of the batch was in flight by then",
			append(stored.LogArgs(), "start_by", b.StartBy)...)
	}
	return nil
}

// nextCheck returns when a batch must be looked at again if nothing happens: at its deadline, and
// at its StartBy while no line was sent; at once if these have passed since they were compared with
// the time. Zero: never.
func (rc *reconciler) nextCheck(r *work.Run, b *store.Batch) (after time.Duration) {
	now := rc.expiry()
	wait := func(until time.Time) {
		d := min(max(0, until.Sub(now)), deadlineCheck) + time.Millisecond
		if after == 0 || d < after {
			after = d
		}
	}
	if !b.Deadline.IsZero() {
		wait(b.Deadline)
	}
	if !b.StartBy.IsZero() && !b.StartMissed && b.FirstSentAt.IsZero() &&
		r.FirstStarted().IsZero() {
		wait(b.StartBy)
	}
	return after
}
