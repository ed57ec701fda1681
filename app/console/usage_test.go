package console_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

type usageList struct {
	Time, Since int64
	Data        []usageRow
	Others      *usageRow
}

type usageRow struct {
	Tenant, Model   string
	Pairs, Requests int64
	Failed          int64 `json:"failed_requests"`
	Input           int64 `json:"input_tokens"`
	Cached          int64 `json:"input_cached_tokens"`
	Output          int64 `json:"output_tokens"`
}

// usedOf returns the usage of fewer requests, the more tokens it has.
func usedOf(tenant, model string, n int64) store.Used {
	return store.Used{Tenant: tenant, Model: model, Requests: 1000 - n, Failed: 500 - n,
		Tokens: batchfile.Usage{InputTokens: 10 * n, CachedTokens: 4 * n, OutputTokens: 2 * n}}
}

// The pairs with the most tokens in the last 7 days are shown, and the others are summed up.
func TestUsageShowsTheLargest(t *testing.T) {
	deps := newDeps("m")
	var asked store.UsageQuery
	deps.Usage = func(_ context.Context, q store.UsageQuery) (used []store.Used, err error) {
		asked = q
		for i := range int64(13) {
			used = append(used, usedOf(fmt.Sprint("t", i), "m", 1+i))
		}
		return append(used, usedOf("t0", "m", 100)), nil // of the second bucket
	}
	list := decode[usageList](t, serve(t, deps, "/admin/usage"))
	if since := time.Unix(list.Since, 0); !since.Equal(asked.From) ||
		!since.Equal(began.Add(-7*24*time.Hour).Truncate(time.Hour)) ||
		!asked.Until.Equal(began) || !asked.ByTenant || !asked.ByModel || asked.ByClass {
		t.Errorf("since %v, asked for %+v", since, asked)
	}
	if buckets := asked.Until.Sub(asked.Until.Truncate(asked.Width)); asked.Width%time.Hour != 0 ||
		asked.Until.Add(-buckets-asked.Width).After(asked.From) {
		t.Errorf("the time is in more than two buckets of %v", asked.Width)
	}
	want := []usageRow{{"t0", "m", 1, 1899, 899, 1010, 404, 202}}
	for n := int64(13); len(want) < 10; n-- {
		want = append(want, usageRow{fmt.Sprint("t", n-1), "m", 1, 1000 - n, 500 - n,
			10 * n, 4 * n, 2 * n})
	}
	if diff := cmp.Diff(want, list.Data); diff != "" {
		t.Errorf("the largest (-want +got):\n%s", diff)
	}
	others := &usageRow{Pairs: 3, Requests: 3000 - 9, Failed: 1500 - 9, Input: 90, Cached: 36,
		Output: 18}
	if diff := cmp.Diff(others, list.Others); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
}

func TestUsageOfNobody(t *testing.T) {
	deps := newDeps("m")
	if list := decode[usageList](t, serve(t, deps, "/admin/usage")); list.Data == nil ||
		len(list.Data) > 0 || list.Others != nil {
		t.Errorf("got %+v", list)
	}
	deps.Usage = func(context.Context, store.UsageQuery) ([]store.Used, error) {
		return nil, store.ErrUnavailable
	}
	if got := serve(t, deps, "/admin/usage"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("without the store: status %d", got.Code)
	}
}
