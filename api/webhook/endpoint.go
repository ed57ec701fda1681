package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// endpoint delivers the events of one endpoint. One goroutine runs it.
type endpoint struct {
	Endpoint
	store    Store
	progress ProgressBoard
	signer   signer
	client   *http.Client
	pace     Pace
	metrics  *metrics
	log      *slog.Logger

	leads     bool
	confirmed time.Time       // when the store was last asked who leads
	cursor    store.Cursor    // up to which there are notices; read when it begins to lead
	judged    time.Time       // when the forecasts were last read
	stalled   map[string]bool // batches that the last reading said to be stalled
	failing   bool            // the last round failed
}

// run works until ctx ends.
func (e *endpoint) run(ctx context.Context, owner store.Owner) {
	defer e.metrics.stands(e.Name)
	e.leads, e.confirmed = false, time.Time{}
	tick := time.NewTicker(e.pace.Look)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := e.round(ctx, owner)
		if failing := err != nil && ctx.Err() == nil; failing != e.failing {
			e.failing = failing
			if failing {
				e.log.WarnContext(ctx, "could not look for events, trying again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// round looks for events and delivers those that are due, if this process leads the endpoint.
func (e *endpoint) round(ctx context.Context, owner store.Owner) error {
	if err := e.lead(ctx, owner); err != nil || !e.leads {
		return err
	}
	if err := e.look(ctx); err != nil {
		if errors.Is(err, store.ErrConflict) {
			e.leads, e.confirmed = false, time.Time{} // another process led meanwhile
			return nil
		}
		return err
	}
	if err := e.deliver(ctx); err != nil {
		return err
	}
	pending, err := e.store.PendingNotices(ctx, e.Name)
	if err == nil {
		e.metrics.pending.WithLabelValues(e.Name).Set(float64(pending))
	}
	return err
}

// lead finds out whether this process leads the endpoint, again and again.
func (e *endpoint) lead(ctx context.Context, owner store.Owner) error {
	if time.Since(e.confirmed) < e.pace.Lease/3 {
		return nil
	}
	_, others, err := e.store.Lead(ctx, owner, []string{"webhook/" + e.Name})
	if err != nil {
		e.leads = false
		return err
	}
	e.confirmed = time.Now()
	if len(others) > 0 {
		e.leads = false
		e.metrics.stands(e.Name)
		return nil
	}
	if e.leads {
		return nil
	}
	if e.cursor, err = e.store.NoticeCursor(ctx, e.Name); err == nil {
		e.leads = true
	}
	return err
}

// page is the number of changes or batches that are looked at together.
const page = 200

// look stores the notices of what has changed.
func (e *endpoint) look(ctx context.Context) error {
	if e.cursor == "" {
		return e.begin(ctx)
	}
	for {
		ids, next, err := e.store.ChangedBatches(ctx, e.cursor, page)
		if errors.Is(err, store.ErrBadCursor) {
			e.log.WarnContext(ctx, "the store does not know up to where events were delivered; "+
				"events of batches that ended meanwhile are lost")
			return e.begin(ctx)
		}
		if err != nil {
			return err
		}
		notices, err := e.ends(ctx, ids)
		if err != nil {
			return err
		}
		if next != e.cursor || len(notices) > 0 {
			if err := e.add(ctx, next, notices); err != nil {
				return err
			}
		}
		if len(ids) < page {
			break
		}
	}
	if !e.wantsVerdicts() || time.Since(e.judged) < e.pace.Verdicts {
		return nil
	}
	e.judged = time.Now()
	return e.judge(ctx)
}

// begin starts with the present: events before it are not delivered.
func (e *endpoint) begin(ctx context.Context) error {
	_, next, err := e.store.ChangedBatches(ctx, "", 1)
	if err != nil {
		return err
	}
	return e.add(ctx, next, nil)
}

func (e *endpoint) add(ctx context.Context, to store.Cursor, notices []store.Notice) error {
	if err := e.store.AddNotices(ctx, e.Name, e.cursor, to, notices); err != nil {
		return err
	}
	e.cursor = to
	return nil
}

// ends returns notices of those of the batches that have ended.
func (e *endpoint) ends(ctx context.Context, ids []string) (notices []store.Notice, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	last, err := e.store.LastNotices(ctx, e.Name, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		b, err := e.store.Batch(ctx, "", id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		event := ends[b.State]
		at := b.EndedAt()
		if event != "" && e.wants(event) && e.follows(b.Tenant) &&
			last[id].Event != string(event) && time.Since(at) < e.GiveUpAfter {
			notices = append(notices, newNotice(id, event, at, true))
		}
	}
	return notices, nil
}

// judge stores notices of the batches whose verdict is another than at the last notice, or that
// wait for runners that answer well.
func (e *endpoint) judge(ctx context.Context) error {
	living, _, err := e.store.ChangedBatches(ctx, "", 1)
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(living, page) {
		outlooks, err := store.ReadOutlooks(ctx, e.progress, e.store, ids)
		if err != nil {
			return fmt.Errorf("read forecasts: %w", err)
		}
		last, err := e.store.LastNotices(ctx, e.Name, ids)
		if err != nil {
			return err
		}
		var notices []store.Notice
		for _, id := range ids {
			outlook, known := outlooks[id]
			if !known {
				continue
			}
			event := e.outlookEvent(id, outlook, Event(last[id].Event))
			if event == "" {
				continue
			}
			b, err := e.store.Batch(ctx, "", id)
			if errors.Is(err, store.ErrNotFound) || err == nil && b.State.Terminal() {
				continue
			}
			if err != nil {
				return err
			}
			if e.follows(b.Tenant) {
				// An event that the endpoint does not want is remembered, for the next one.
				notices = append(notices, newNotice(id, event, time.Now(), e.wants(event)))
			}
		}
		if len(notices) > 0 {
			if err := e.add(ctx, e.cursor, notices); err != nil {
				return err
			}
		}
	}
	return nil
}

// outlookEvent returns the event of what is expected of a batch after the last event about it;
// empty: none. A batch counts as stalled when two readings in a row say so.
func (e *endpoint) outlookEvent(id string, of store.Outlook, last Event) Event {
	if !strings.HasPrefix(of.Waiting, stalledReason) {
		delete(e.stalled, id)
		if last == Stalled {
			return Resumed
		}
		return verdictEvent(of.Verdict, last)
	}
	seen := e.stalled[id]
	if e.stalled == nil {
		e.stalled = map[string]bool{}
	}
	e.stalled[id] = true
	if !seen || last == Stalled {
		return ""
	}
	return Stalled
}

// stalledReason begins what a batch says that waits for runners that answer well.
const stalledReason = "runners_failing:"

// verdictEvent returns the event of a verdict after the last event about the batch; empty: none.
func verdictEvent(v store.Verdict, last Event) Event {
	var event Event
	switch v {
	case store.VerdictAtRisk:
		event = AtRisk
	case store.VerdictInfeasible:
		event = Infeasible
	case store.VerdictOK:
		if last == "" || last == Resumed { // as everybody expects
			return ""
		}
		event = Feasible
	}
	if event == last {
		return ""
	}
	return event
}

func newNotice(batch string, event Event, at time.Time, pending bool) store.Notice {
	n := store.Notice{ID: "evt_" + rand.Text(), Batch: batch, Event: string(event), CreatedAt: at}
	if pending {
		n.Due = time.Now()
	}
	return n
}
