package segments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// sweepPage is the number of objects that are listed or deleted at a time.
const sweepPage = 1000

// sweepUntil deletes what no journal needs until ctx ends.
func (js *Journals) sweepUntil(ctx context.Context) {
	var deleteAt, sweepAt <-chan time.Time
	if js.opts.DeleteEvery > 0 {
		ticker := time.NewTicker(js.opts.DeleteEvery)
		defer ticker.Stop()
		deleteAt = ticker.C
	}
	if js.opts.SweepEvery > 0 {
		sweepAt = time.After(rand.N(js.opts.SweepEvery))
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-deleteAt:
			_, err = js.DeleteQueued(ctx)
		case <-sweepAt:
			_, err = js.Sweep(ctx)
			sweepAt = time.After(js.opts.SweepEvery)
		}
		if err != nil && ctx.Err() == nil {
			js.opts.Logger.WarnContext(ctx, "could not delete old segments; trying again later",
				"error", err)
		}
	}
}

// DeleteQueued deletes the objects that no journal needs any more, and returns their number.
func (js *Journals) DeleteQueued(ctx context.Context) (deleted int, err error) {
	if _, err := js.registry.AdvanceSweep(ctx, js.opts.SweepAge); err != nil {
		return 0, fmt.Errorf("advance the boundary of the sweep: %w", err)
	}
	for {
		due, err := js.registry.TakeDeletions(ctx, js.opts.DeleteAfter, sweepPage)
		if err != nil || len(due) == 0 {
			return deleted, err
		}
		if err := js.delete(ctx, due); err != nil {
			return deleted, err
		}
		if err := js.registry.FinishDeletions(ctx, due); err != nil {
			return deleted, err
		}
		deleted += len(due)
		if len(due) < sweepPage {
			return deleted, nil
		}
	}
}

// Sweep lists all objects, deletes those that were never registered, and returns their number. They
// are what crashes and fenced writers leave. The boundary advances first, so none of them can be
// registered meanwhile or later.
func (js *Journals) Sweep(ctx context.Context) (deleted int, err error) {
	through, err := js.registry.AdvanceSweep(ctx, js.opts.SweepAge)
	if err != nil {
		return 0, fmt.Errorf("advance the boundary of the sweep: %w", err)
	}
	for after := ""; ; {
		names, err := js.objects.List(ctx, after, sweepPage)
		if err != nil {
			return deleted, fmt.Errorf("list segments: %w", err)
		}
		var keys []Key
		for _, name := range names {
			if key, err := ParseKey(name); err == nil && key.Stamp <= through {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			unknown, err := js.registry.Unknown(ctx, keys)
			if err != nil {
				return deleted, fmt.Errorf("find segments that are not registered: %w", err)
			}
			if err := js.delete(ctx, unknown); err != nil {
				return deleted, err
			}
			deleted += len(unknown)
		}
		if len(names) < sweepPage || len(keys) == 0 { // keys are in the order of their stamps
			return deleted, nil
		}
		after = names[len(names)-1]
	}
}

func (js *Journals) delete(ctx context.Context, keys []Key) error {
	if len(keys) == 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	if err := js.objects.Delete(ctx, names...); err != nil {
		return fmt.Errorf("delete %d segments: %w", len(names), err)
	}
	return nil
}
