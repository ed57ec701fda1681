package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/store"
)

// batchDetails is the answer of GET /admin/batches/{id}.
type batchDetails struct {
	Object string        `json:"object"`
	Time   decision.Time `json:"time"`
	batch
	Endpoint string `json:"endpoint"`
	Window   string `json:"completion_window"`
	RetryOf  string `json:"retry_of"` // empty: it is none
	Retrying int    `json:"retrying"`
	Attempts int64  `json:"attempts"`
	// History lists what has happened, oldest first.
	History []happened `json:"history"`
	// NeedsKey says whether reading results, and changing the batch, needs a key of the API.
	NeedsKey bool `json:"needs_key"`
	// Refused says why the console can't do either; null: it can.
	Refused *string `json:"refused"`
}

// happened is something that happened to a batch.
type happened struct {
	At   int64  `json:"at"`
	What string `json:"what"`
	By   string `json:"by"` // the beginning of the hash of a key; empty: unknown, or nobody
}

func (c *Console) batch(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	d, err := c.deps.Details(r.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		return unknownBatch(id)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, batchDetails{
		Object: "batch", Time: decision.Time{Time: c.deps.Now()}, batch: show(&d.BatchSummary),
		Endpoint: d.Batch.Endpoint, Window: d.Batch.Window, RetryOf: d.Batch.Options.RetryOf,
		Retrying: d.Retrying, Attempts: d.Attempts, History: history(&d.Batch),
		NeedsKey: c.deps.NeedsKey(), Refused: orNull(c.refusal(r)),
	})
}

// history lists what has happened to a batch, in the order in which it can.
func history(b *store.Batch) []happened {
	all := []happened{}
	add := func(at time.Time, what string) {
		if !at.IsZero() {
			all = append(all, happened{At: at.Unix(), What: what})
		}
	}
	add(b.CreatedAt, "created")
	add(b.InProgressAt, "input checked, lines may start")
	add(b.FirstSentAt, "first line sent")
	for _, change := range b.Changes {
		all = append(all, happened{change.At.Unix(), change.What, change.By})
	}
	add(b.FinalizingAt, "all lines ended, results are written")
	add(b.EndedAt(), string(b.State))
	slices.SortStableFunc(all, func(x, y happened) int { return cmp.Compare(x.At, y.At) })
	return all
}

func unknownBatch(id string) *httpError {
	return &httpError{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "id",
		Code: "batch_not_found", Message: fmt.Sprintf("There is no batch %s. It may have been "+
			"deleted, or its retention has ended.", quoted(id))}
}

// The number of lines in an answer.
const (
	defaultLines = 20
	maxLines     = 100
)

// lineList is the answer of GET /admin/batches/{id}/lines.
type lineList struct {
	Object string          `json:"object"`
	Data   []api.EndedLine `json:"data"`
	Next   string          `json:"next"`
}

func (c *Console) endedLines(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	limit, err := readLimit(v, defaultLines, maxLines)
	if err != nil {
		return err
	}
	lines, next, err := c.deps.EndedLines(r.Context(), r.PathValue("id"), v.Get("after"), limit)
	if errors.Is(err, api.ErrBadCursor) {
		return invalid("after", "%v.", err)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, lineList{"list", append([]api.EndedLine{}, lines...), next})
}
