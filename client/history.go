package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// HistoryList is what users of pools felt by hour or by day, and what batch work did.
type HistoryList struct {
	Step string          `json:"step"` // hour or day
	Data []PoolHistory   `json:"data"`
	Raw  json.RawMessage `json:"-"` // the answer as received
}

// PoolHistory is the history of a pool.
type PoolHistory struct {
	Pool    string       `json:"pool"`
	Summary string       `json:"summary"` // a sentence
	Total   HistoryRow   `json:"total"`
	Rows    []HistoryRow `json:"rows"` // the oldest first
}

// HistoryRow is an hour or a day. Nil numbers are unknown.
type HistoryRow struct {
	Time        int64      `json:"time"` // its beginning, in Unix seconds
	Requests    int64      `json:"requests"`
	FirstTokens LateShares `json:"first_tokens"`
	Tokens      LateShares `json:"tokens"`
	// Points is the share of requests that batch work made late, by an estimate, in percentage
	// points, and Allowed the largest one that is allowed; nil: nothing is promised.
	Points      *float64 `json:"points"`
	Allowed     *float64 `json:"allowed_points"`
	Lines       int64    `json:"lines"`
	BatchTokens int64    `json:"batch_tokens"`
}

// LateShares are the shares of interactive requests that were late by one of their times, and that
// would have been without batch lines.
type LateShares struct {
	Requests int64    `json:"requests"`
	Late     *float64 `json:"late"`
	Without  *float64 `json:"late_without"`
}

// History returns the history of a pool, or of all if it is empty, of a time until now: by hour, or
// by day if that is more than two days. An unknown pool is an *Error that lists the pools.
func (c *Client) History(
	ctx context.Context, pool string, since time.Duration,
) (list HistoryList, err error) {
	const path = "/admin/history"
	v := url.Values{"since": {since.String()}, "pool": {pool}}
	r := request{method: http.MethodGet, path: path, query: v}
	if err = c.call(ctx, r, &list.Raw); err != nil {
		return list, err
	}
	if err := json.Unmarshal(list.Raw, &list); err != nil {
		return list, fmt.Errorf("read answer to GET %s: %w", path, err)
	}
	return list, nil
}
