package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/store"
)

// The number of batches in an answer, ended ones aside.
const (
	defaultBatches = 50
	maxBatches     = 100
)

// batchList is the answer of GET /admin/batches.
type batchList struct {
	Object string  `json:"object"`
	Total  int     `json:"total"` // that have not ended
	Data   []batch `json:"data"`  // those that have not ended before those that have
	// Next continues a search; null: there are no more, or nothing was searched for.
	Next *string `json:"next"`
}

type batch struct {
	ID       string   `json:"id"`
	Tenant   string   `json:"tenant"`
	Status   string   `json:"status"`
	Paused   bool     `json:"paused"`
	Models   []string `json:"models"`
	Priority int      `json:"priority"`
	Counts   counts   `json:"request_counts"`
	NotRun   int      `json:"not_run"` // of the failed ones: the batch ended first
	InFlight int      `json:"in_flight"`
	Rate     float64  `json:"rate"`
	Waiting  *string  `json:"waiting"`
	Reason   *string  `json:"reason"`

	// Failures are the most frequent causes of failed lines.
	Failures []store.Failure `json:"failures"`
	// Faults are those of the input.
	Faults []api.FaultCount `json:"faults"`

	CreatedAt *int64  `json:"created_at"`
	Deadline  *int64  `json:"deadline"`
	Verdict   *string `json:"verdict"`
	Finish    *int64  `json:"predicted_finish"`
	Band      []int64 `json:"predicted_band"`
	OneMore   *int64  `json:"predicted_finish_with_one_more"`
	EndedAt   *int64  `json:"ended_at"`
}

type counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

func (c *Console) batches(w http.ResponseWriter, r *http.Request) error {
	limit, err := readLimit(r.URL.Query(), defaultBatches, maxBatches)
	if err != nil {
		return err
	}
	q, searched, err := api.ReadSearch(r.URL.Query())
	if err != nil {
		return &httpError{Status: http.StatusBadRequest, Type: "invalid_request_error",
			Code: "invalid_value", Message: err.Error()}
	}
	living, total, ended := c.deps.Batches(limit)
	ids, next := append(living, ended...), ""
	if searched {
		q.Limit = limit
		ids, next, err = c.deps.Search(r.Context(), q)
	}
	if errors.Is(err, store.ErrBadCursor) {
		return invalid("after", "there is no such batch any more.")
	}
	if err != nil {
		return err
	}
	summaries, err := c.deps.Summaries(r.Context(), ids)
	if err != nil {
		return err
	}
	list := batchList{Object: "list", Total: total, Data: make([]batch, len(summaries)),
		Next: orNull(next)}
	for i := range summaries {
		list.Data[i] = show(&summaries[i])
	}
	return writeJSON(w, http.StatusOK, list)
}

func show(s *api.BatchSummary) batch {
	models := s.Models
	if models == nil {
		models = []string{}
	}
	var band []int64
	if !s.Earliest.IsZero() && !s.Latest.IsZero() {
		band = []int64{s.Earliest.Unix(), s.Latest.Unix()}
	}
	return batch{
		ID: s.ID, Tenant: s.Tenant, Status: string(s.State), Paused: s.Paused,
		Models: models, Priority: s.Priority, Counts: counts(s.Counts),
		NotRun: s.NotRun, InFlight: s.InFlight, Rate: s.Rate,
		Waiting: orNull(s.Waiting), Reason: orNull(s.Reason),
		Failures:  append([]store.Failure{}, s.Failures...),
		Faults:    append([]api.FaultCount{}, s.Faults...),
		CreatedAt: unix(s.CreatedAt), Deadline: unix(s.Deadline),
		Verdict: orNull(string(s.Verdict)), Finish: unix(s.Finish), Band: band,
		OneMore: unix(s.OneMore), EndedAt: unix(s.EndedAt),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func unix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}
