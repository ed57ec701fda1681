package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// poolHistory adds to the store what users of the pools felt, what batch work did, and what
// interactive requests have used, by hour. It
// adds what was counted since the save before, so another process, or this one after a restart,
// continues the hour, and an hour that a clock which was set back repeats.
type poolHistory struct {
	*work.Session
	store   PoolHistory
	every   time.Duration    // between two saves
	timeout time.Duration    // of one save
	expiry  func() time.Time // the time by which hours are removed
	storeFailures

	used usage // for the next save

	// Owned by the loop, and by flush when that has ended.
	last    map[string]plan.PoolOutcomes // by pool
	counted map[poolHour]*store.PoolHour // for the next save
	next    time.Time                    // when to save again
	swept   time.Time                    // the hour of the last save

	// turn has a value while a save is made, and the save owns what follows.
	turn   chan struct{}
	number int64
	saving []store.PoolHour // by the save of that number, again until its end is known
	using  []store.Used     // as well
}

type poolHour struct {
	pool string
	hour int64 // Unix seconds
}

func (h *poolHistory) post(now time.Time, planner *plan.Planner) {
	h.count(now, planner.Outcomes())
	if h.next.IsZero() {
		h.next = now.Add(h.every)
	}
	if !now.Before(h.next) {
		h.save(now)
	}
}

// end saves what was counted before lines drain, which may take longer than the process is given.
func (h *poolHistory) end(now time.Time, planner *plan.Planner) {
	h.count(now, planner.Outcomes())
	h.save(now)
}

// count adds what the outcomes have grown by to the hour of now.
func (h *poolHistory) count(now time.Time, all []plan.PoolOutcomes) {
	last := make(map[string]plan.PoolOutcomes, len(all))
	for _, o := range all {
		before := h.last[o.ID]
		last[o.ID] = o
		if before.Lines > o.Lines {
			before.Lines, before.LineTokens = 0, 0
		}
		grown := store.PoolHour{Pool: o.ID, Hour: now.UTC().Truncate(time.Hour),
			FirstTokens: growth(before.FirstTokens, o.FirstTokens),
			Tokens:      growth(before.Tokens, o.Tokens), Allowed: o.Allowed,
			Lines: o.Lines - before.Lines, LineTokens: o.LineTokens - before.LineTokens}
		if grown.FirstTokens.Requests+grown.Tokens.Requests == 0 && grown.Lines == 0 {
			continue
		}
		key := poolHour{grown.Pool, grown.Hour.Unix()}
		if sum := h.counted[key]; sum != nil {
			sum.Add(grown)
		} else {
			h.counted[key] = &grown
		}
	}
	h.last = last
}

// growth returns what was counted between two judgements. A new controller counts from 0.
func growth(before, now flowcontrol.Judgement) store.Lateness {
	if now.Requests < before.Requests {
		before = flowcontrol.Judgement{}
	}
	return store.Lateness{Requests: now.Requests - before.Requests, Late: now.Late - before.Late,
		Estimated: now.Estimated - before.Estimated, Added: now.Added - before.Added}
}

// save has another goroutine write to the store, unless one does. Once an hour it writes even if
// nothing was counted, so that old hours go.
func (h *poolHistory) save(now time.Time) {
	h.next = now.Add(h.every)
	select {
	case h.turn <- struct{}{}:
	default:
		return
	}
	hour := now.Truncate(time.Hour)
	if !h.take() && hour.Equal(h.swept) {
		<-h.turn
		return
	}
	h.swept = hour
	h.Tasks.Start(func(ctx context.Context) {
		defer func() { <-h.turn }()
		h.write(ctx)
	})
}

// take begins the save of what was counted, unless one before has failed. It reports whether there
// is anything to save.
func (h *poolHistory) take() bool {
	if len(h.saving)+len(h.using) > 0 {
		return true
	}
	h.number++
	h.using = h.used.take()
	for _, hour := range h.counted {
		h.saving = append(h.saving, *hour)
	}
	clear(h.counted)
	return len(h.saving)+len(h.using) > 0
}

func (h *poolHistory) write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	now := h.expiry()
	err := h.store.AddPoolHours(ctx, h.Owner, h.number, h.saving,
		now.Add(-store.PoolHistoryRetention))
	if err == nil {
		err = h.store.AddUsage(ctx, h.Owner, h.number, h.using, now.Add(-store.UsageRetention))
	}
	if err == nil || errors.Is(err, store.ErrFenced) {
		h.saving, h.using = nil, nil
	}
	h.log(h.Log, err, "could not save the history of the pools, trying again")
}

// flush saves what is left when the loop has ended.
func (h *poolHistory) flush(ctx context.Context) {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	for range 2 { // what a save before has failed to write comes first
		if !h.take() {
			return
		}
		h.write(ctx)
	}
}
