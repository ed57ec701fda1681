package console

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/store"
)

// poolHistoryList is the answer of GET /admin/history.
type poolHistoryList struct {
	Object string        `json:"object"`
	Time   int64         `json:"time"`  // of the daemon
	Since  int64         `json:"since"` // the beginning of the first hour
	Step   string        `json:"step"`  // hour or day, of the rows
	Data   []poolHistory `json:"data"`
}

type poolHistory struct {
	Pool    string       `json:"pool"`
	Summary string       `json:"summary"` // a sentence
	Total   historyRow   `json:"total"`   // since the beginning of the first row
	Rows    []historyRow `json:"rows"`    // the oldest first, without those in which nothing was
}

// historyRow is what users of a pool felt in an hour or a day (UTC), and what batch work did.
type historyRow struct {
	Time     int64 `json:"time"` // its beginning
	Requests int64 `json:"requests"`
	// FirstTokens and Tokens judge the requests by the time of their first token, and by the mean
	// time between their further tokens.
	FirstTokens lateShares `json:"first_tokens"`
	Tokens      lateShares `json:"tokens"`
	// Points is the share of requests that batch work made late, by an estimate, in percentage
	// points, and Allowed the largest one allowed. Null: unknown, and nothing is promised.
	Points      *float64 `json:"points"`
	Allowed     *float64 `json:"allowed_points"`
	Lines       int64    `json:"lines"`
	BatchTokens int64    `json:"batch_tokens"`
}

// lateShares are shares of requests, 0 to 1. Null: unknown.
type lateShares struct {
	Requests int64    `json:"requests"`
	Late     *float64 `json:"late"`         // with batch lines beside them, as they ran
	Without  *float64 `json:"late_without"` // without batch lines, by an estimate
}

const (
	defaultHistory = 24 * time.Hour
	// hourlyHistory is the longest time that is shown by hour unless a step is given.
	hourlyHistory = 48 * time.Hour
)

// historyQuery selects what is shown of the history.
type historyQuery struct {
	period time.Duration
	step   time.Duration // an hour or a day
	pool   string        // empty: all
}

func readHistoryQuery(u *url.URL) (q historyQuery, err error) {
	v, err := readValues(u)
	if err != nil {
		return q, err
	}
	q.period, q.pool = defaultHistory, v.Get("pool")
	if text := v.Get("since"); text != "" {
		q.period, err = humanize.ParsePeriod(text)
		if err != nil || q.period <= 0 || q.period > store.PoolHistoryRetention {
			return q, invalid("since", "give the time until now as 24h, 7d or 30d, at most %s; "+
				"got %s.", humanize.Period(store.PoolHistoryRetention), quoted(text))
		}
	}
	q.step = time.Hour
	switch text := v.Get("step"); {
	case text == "day", text == "" && q.period > hourlyHistory:
		q.step = 24 * time.Hour
	case text != "" && text != "hour":
		return q, invalid("step", "give hour or day; got %s.", quoted(text))
	}
	return q, nil
}

func (c *Console) history(w http.ResponseWriter, r *http.Request) error {
	q, err := readHistoryQuery(r.URL)
	if err != nil {
		return err
	}
	now := c.deps.Now()
	since := now.UTC().Add(-q.period).Truncate(time.Hour)
	hours, err := c.deps.History(r.Context(), q.pool, since)
	if err != nil {
		return err
	}
	byPool := map[string][]store.PoolHour{}
	for _, h := range hours {
		byPool[h.Pool] = append(byPool[h.Pool], h)
	}
	known := c.poolNames(r.Context())
	names := []string{q.pool}
	if q.pool == "" {
		names = slices.Clone(known)
		for name := range byPool {
			names = append(names, name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	} else if len(hours) == 0 && !slices.Contains(known, q.pool) {
		return unknownPool(q.pool, known, c.deps.Problems())
	}
	list := poolHistoryList{Object: "list", Time: now.Unix(), Since: since.Unix(), Step: "hour",
		Data: []poolHistory{}}
	if q.step > time.Hour {
		list.Step = "day"
	}
	for _, name := range names {
		list.Data = append(list.Data, historyOf(name, byPool[name], since, q))
	}
	return writeJSON(w, http.StatusOK, list)
}

func historyOf(
	pool string, hours []store.PoolHour, since time.Time, q historyQuery,
) poolHistory {
	all, rows := store.PoolHour{Hour: since}, []store.PoolHour{}
	for _, h := range hours {
		all.Add(h)
		h.Hour = h.Hour.Truncate(q.step)
		if n := len(rows); n > 0 && rows[n-1].Hour.Equal(h.Hour) {
			rows[n-1].Add(h)
		} else {
			rows = append(rows, h)
		}
	}
	shown := poolHistory{Pool: pool, Total: showHistory(&all), Rows: []historyRow{}}
	shown.Summary = shown.Total.sentence(pool, q.period)
	for i := range rows {
		shown.Rows = append(shown.Rows, showHistory(&rows[i]))
	}
	return shown
}

func showHistory(h *store.PoolHour) historyRow {
	first, firstAdded := showLateness(h.FirstTokens)
	tokens, tokensAdded := showLateness(h.Tokens)
	row := historyRow{Time: h.Hour.Unix(), Requests: max(first.Requests, tokens.Requests),
		FirstTokens: first, Tokens: tokens, Lines: h.Lines, BatchTokens: h.LineTokens}
	if requests := max(h.FirstTokens.Requests, h.Tokens.Requests); requests > 0 {
		row.Points = rounded(100 * (firstAdded + tokensAdded) / requests)
	}
	if h.Allowed > 0 {
		row.Allowed = rounded(100 * h.Allowed)
	}
	return row
}

// minEstimated is the share of estimated requests, 0 to 1, from which on they stand for all.
const minEstimated = 0.99

// showLateness returns the shares, and the number of requests that batch work made late; NaN:
// unknown.
func showLateness(l store.Lateness) (shares lateShares, added float64) {
	shares.Requests = int64(math.Round(l.Requests))
	if l.Requests <= 0 {
		return shares, 0
	}
	shares.Late = rounded(l.Late / l.Requests)
	if l.Estimated < minEstimated*l.Requests {
		return shares, math.NaN()
	}
	added = min(l.Added, l.Late)
	shares.Without = rounded((l.Late - added) / l.Requests)
	return shares, added
}

// rounded returns a number to the sixth digit; null: unknown.
func rounded(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	n = math.Round(1e6*n) / 1e6
	return &n
}

// sentence says what users of the pool felt in a time until now.
func (row *historyRow) sentence(pool string, period time.Duration) string {
	text := fmt.Sprintf("In the last %s ", humanize.Period(period))
	if period == time.Hour {
		text = "In the last hour "
	}
	name := humanize.Printable(pool)
	switch {
	case row.Requests == 0 && row.Lines == 0:
		return text + fmt.Sprintf("nothing was recorded of pool %s.", name)
	case row.Requests == 0:
		text += fmt.Sprintf("no request of users of pool %s was held against an objective", name)
	case row.Points == nil:
		text += fmt.Sprintf("it is unknown how many more answers were late beside lines to users "+
			"of pool %s: its policy does not estimate that", name)
	default:
		text += fmt.Sprintf("users of pool %s had %.1f points more late answers beside lines",
			name, *row.Points)
		if row.Allowed != nil {
			text += fmt.Sprintf(", of %.1f allowed", *row.Allowed)
		}
	}
	return text + fmt.Sprintf("; lines took %s tokens.", humanize.Short(row.BatchTokens))
}
