package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// usagePeriod is the time of which usage is shown.
	usagePeriod = 7 * 24 * time.Hour
	// shownUsage limits the pairs of tenant and model that are shown one by one.
	shownUsage = 10
)

// usageList is the answer of GET /admin/usage.
type usageList struct {
	Object string  `json:"object"`
	Time   int64   `json:"time"`  // of the daemon
	Since  int64   `json:"since"` // the beginning of the first hour
	Data   []usage `json:"data"`  // the most tokens first
	// Others is the sum of those after Data; null: there are none.
	Others *usage `json:"others"`
}

// usage is what requests of a tenant for a model have used.
type usage struct {
	Tenant       string `json:"tenant"`
	Model        string `json:"model"`
	Pairs        int    `json:"pairs"` // of tenant and model
	Requests     int64  `json:"requests"`
	Failed       int64  `json:"failed_requests"`
	InputTokens  int64  `json:"input_tokens"`
	CachedTokens int64  `json:"input_cached_tokens"`
	OutputTokens int64  `json:"output_tokens"`
}

func (u *usage) add(other *usage) {
	u.Pairs += other.Pairs
	u.Requests += other.Requests
	u.Failed += other.Failed
	u.InputTokens += other.InputTokens
	u.CachedTokens += other.CachedTokens
	u.OutputTokens += other.OutputTokens
}

func (c *Console) usage(w http.ResponseWriter, r *http.Request) error {
	now := c.deps.Now().UTC()
	since := now.Add(-usagePeriod).Truncate(time.Hour)
	// The buckets are so wide that the time is in one, or in two.
	used, err := c.deps.Usage(r.Context(), store.UsageQuery{From: since, Until: now,
		Width: usagePeriod + time.Hour, ByTenant: true, ByModel: true})
	if err != nil {
		return err
	}
	type pair struct{ tenant, model string }
	list, at := usageList{Object: "list", Time: now.Unix(), Since: since.Unix(), Data: []usage{}},
		map[pair]int{}
	for _, u := range used {
		shown := usage{Tenant: u.Tenant, Model: u.Model, Requests: u.Requests, Failed: u.Failed,
			InputTokens: u.Tokens.InputTokens, CachedTokens: u.Tokens.CachedTokens,
			OutputTokens: u.Tokens.OutputTokens}
		i, known := at[pair{u.Tenant, u.Model}]
		if known {
			list.Data[i].add(&shown)
			continue
		}
		at[pair{u.Tenant, u.Model}] = len(list.Data)
		shown.Pairs = 1
		list.Data = append(list.Data, shown)
	}
	slices.SortFunc(list.Data, func(a, b usage) int {
		return cmp.Or(cmp.Compare(b.InputTokens+b.OutputTokens, a.InputTokens+a.OutputTokens),
			cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Tenant, b.Tenant),
			cmp.Compare(a.Model, b.Model))
	})
	if len(list.Data) > shownUsage {
		list.Others = new(usage)
		for i := range list.Data[shownUsage:] {
			list.Others.add(&list.Data[shownUsage+i])
		}
		list.Data = list.Data[:shownUsage]
	}
	return writeJSON(w, http.StatusOK, list)
}
