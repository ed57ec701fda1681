package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

// BatchSummary is what an operator sees of a batch, whoever's it is. It holds nothing of its lines
// and none of its metadata.
type BatchSummary struct {
	ID, Tenant string
	State      store.State
	Paused     bool
	Models     []string
	Priority   int
	Counts     store.Counts
	NotRun     int // lines of Counts.Failed without an answer, because the batch ended first
	InFlight   int
	Rate       float64         // lines per second at present
	Waiting    string          // why no further line is started; empty: lines start
	Reason     string          // why the batch ended early
	Failures   []store.Failure // the most frequent causes of failed lines, without samples
	Faults     []FaultCount    // of the input
	CreatedAt  time.Time
	Deadline   time.Time     // zero: none
	Verdict    store.Verdict // whether Deadline will be met; empty: unknown
	Finish     time.Time     // as predicted or, where nothing is, at Rate; zero: unknown
	// Earliest and Latest are when it will probably have ended; zero: nothing is predicted.
	Earliest, Latest time.Time
	// OneMore is Finish if one more runner were started now; zero: no earlier.
	OneMore time.Time
	EndedAt time.Time // zero: it has not
}

// Summaries returns summaries of batches by their ids, of all tenants, in the same order. It leaves
// out those that do not exist.
func (s *Server) Summaries(ctx context.Context, ids []string) ([]BatchSummary, error) {
	batches, faults := make([]store.Batch, 0, len(ids)), make([][]FaultCount, 0, len(ids))
	for _, id := range ids {
		b, err := s.meta.Batch(ctx, "", id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read batch %s: %w", id, err)
		}
		faults = append(faults, countFaults(b.Errors))
		b.Errors = nil // may be many, and are not shown
		batches = append(batches, b)
	}
	shown, err := s.show(ctx, batches...)
	if err != nil {
		return nil, err
	}
	all := make([]BatchSummary, len(batches))
	for i, b := range batches {
		all[i] = summarize(b, shown[i])
		all[i].Faults = faults[i]
	}
	return all, nil
}

func summarize(b store.Batch, shown batchObject) BatchSummary {
	d := shown.Tidefill
	s := BatchSummary{
		ID: b.ID, Tenant: b.Tenant, State: b.State, Paused: b.Paused, Priority: d.Priority,
		Counts: store.Counts(shown.RequestCounts), InFlight: d.InFlight, Rate: d.Rate,
		NotRun: d.NotRun,
		Reason: b.Reason, CreatedAt: b.CreatedAt, Deadline: b.Deadline, EndedAt: b.EndedAt(),
	}
	s.Failures = slices.Clone(d.Failures)
	for i := range s.Failures {
		s.Failures[i].Sample = "" // it may repeat what the user wrote
	}
	for _, m := range b.Models {
		s.Models = append(s.Models, m.Model)
	}
	if d.Waiting != nil {
		s.Waiting = *d.Waiting
	}
	if d.Verdict != nil {
		s.Verdict = *d.Verdict
	}
	switch {
	case d.PredictedFinish != nil: // which knows of replicas that are still to come
		s.Finish = time.Unix(*d.PredictedFinish, 0)
	case d.ETA != nil:
		s.Finish = time.Unix(*d.ETA, 0)
	}
	if band := d.PredictedBand; len(band) == 2 {
		s.Earliest, s.Latest = time.Unix(band[0], 0), time.Unix(band[1], 0)
	}
	if d.WithOneMore != nil {
		s.OneMore = time.Unix(*d.WithOneMore, 0)
	}
	return s
}
