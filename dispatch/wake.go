package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Poll has the store asked for changed batches now, because some may have changed.
func (d *Dispatcher) Poll() {
	if s := d.current.Load(); s != nil {
		wake(s.reconciler.wake)
	}
	wake(d.watchNow)
}

// wokenPolls is the factor between the times of polls while changes are notified: they make up for
// notifications that were lost.
const wokenPolls = 4

// NotifyOfChanges says whether Poll is called at each change of another process at present.
func (d *Dispatcher) NotifyOfChanges(are bool) { d.notified.Store(are) }

// pollWait returns the time until the store is asked for changed batches again.
func (d *Dispatcher) pollWait() time.Duration {
	every := d.settings.Load().PollEvery
	if d.notified.Load() {
		return wokenPolls * every
	}
	return every
}

// LookForLeaders has it looked at soon whether this process can lead more, because another one may
// have given up its leadership.
func (d *Dispatcher) LookForLeaders() {
	if s := d.current.Load(); s != nil {
		s.fleet.Look()
	}
}

// wake puts a value into a channel of capacity 1.
func wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// Epoch returns the epoch of the leadership of this process; false: it leads nothing.
func (d *Dispatcher) Epoch() (epoch int64, leads bool) {
	s := d.current.Load()
	if s == nil {
		return 0, false
	}
	return s.leading.Since()
}

// Watch follows which batches there are until ctx ends, for a process that does not run the
// dispatcher.
func (d *Dispatcher) Watch(ctx context.Context) error {
	const page = 500
	var cursor store.Cursor
	for ctx.Err() == nil {
		began := time.Now()
		ids, next, err := d.deps.Metadata.ChangedBatches(ctx, cursor, page)
		for i := 0; err == nil && i < len(ids); i++ {
			err = d.watch(ctx, ids[i])
		}
		switch {
		case errors.Is(err, store.ErrBadCursor):
			cursor = ""
		case err == nil:
			cursor = next
			d.ready.Store(true)
			if len(ids) == page {
				continue
			}
			d.metrics.feed.readUntil(began)
		}
		if failed := err != nil && ctx.Err() == nil; failed != d.unwatched {
			if d.unwatched = failed; failed {
				d.log.WarnContext(ctx, "could not follow the batches, trying again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-d.watchNow:
		case <-time.After(d.pollWait()):
		}
	}
	return nil
}

// watch reads a batch that has changed.
func (d *Dispatcher) watch(ctx context.Context, id string) error {
	b, err := d.deps.Metadata.Batch(ctx, "", id)
	if errors.Is(err, store.ErrNotFound) {
		d.shown.forget(id)
		return nil
	}
	if err == nil {
		d.shown.see(&b)
	}
	return err
}
