package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// UsageQuery selects what Usage sums up. Zero fields select all and group by nothing.
type UsageQuery struct {
	// Since and Until are extended to full hours. Since is required; Until: now.
	Since, Until time.Time
	// Hourly has a bucket for each hour. Otherwise there is one for each day (UTC).
	Hourly bool
	// Tenants and Models select up to 100 each. Others than admins see their own tenant only.
	Tenants, Models []string
	// ByTenant, ByModel, ByBatch and ByClass have those summed up one by one.
	ByTenant, ByModel, ByBatch, ByClass bool
}

// UsageBucket is what was used in an hour or a day, or in the part of it that was asked for.
type UsageBucket struct {
	StartTime int64  `json:"start_time"` // Unix seconds
	EndTime   int64  `json:"end_time"`
	Results   []Used `json:"results"` // one for each group; none: nothing was used
}

// Used is what a group has used. What it is not grouped by is nil.
type Used struct {
	Requests          int64   `json:"num_model_requests"` // that were answered, or failed for good
	InputTokens       int64   `json:"input_tokens"`
	InputCachedTokens int64   `json:"input_cached_tokens"` // part of InputTokens
	OutputTokens      int64   `json:"output_tokens"`
	Tenant            *string `json:"project_id"`
	Model             *string `json:"model"`
	Batch             *bool   `json:"batch"`
	Tidefill          struct {
		FailedRequests  int64   `json:"failed_requests"`  // part of Requests
		ReasoningTokens int64   `json:"reasoning_tokens"` // part of OutputTokens
		Class           *string `json:"class"`
	} `json:"tidefill"`
}

// Usage returns the buckets of a query, page by page, the earliest first. The sequence ends after
// an error.
func (c *Client) Usage(ctx context.Context, q UsageQuery) iter.Seq2[UsageBucket, error] {
	return func(yield func(UsageBucket, error) bool) {
		v := q.values()
		for {
			var page struct {
				Data []UsageBucket `json:"data"`
				Next string        `json:"next_page"`
			}
			if err := c.call(ctx, request{method: http.MethodGet,
				path: "/v1/organization/usage/completions", query: v}, &page); err != nil {
				yield(UsageBucket{}, fmt.Errorf("list usage: %w", err))
				return
			}
			for _, b := range page.Data {
				if !yield(b, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			v.Set("page", page.Next)
		}
	}
}

// The largest pages, in buckets.
const maxUsageDays, maxUsageHours = 31, 168

func (q UsageQuery) values() url.Values {
	v := url.Values{"start_time": {strconv.FormatInt(q.Since.Unix(), 10)},
		"project_ids": q.Tenants, "models": q.Models,
		"bucket_width": {"1d"}, "limit": {strconv.Itoa(maxUsageDays)}}
	if q.Hourly {
		v.Set("bucket_width", "1h")
		v.Set("limit", strconv.Itoa(maxUsageHours))
	}
	if !q.Until.IsZero() {
		v.Set("end_time", strconv.FormatInt(q.Until.Unix(), 10))
	}
	for _, group := range []struct {
		name string
		by   bool
	}{{"project_id", q.ByTenant}, {"model", q.ByModel}, {"batch", q.ByBatch},
		{"class", q.ByClass}} {
		if group.by {
			v.Add("group_by", group.name)
		}
	}
	return v
}
