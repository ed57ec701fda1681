package dispatch

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/store"
)

// usage counts what interactive requests have used since it was taken.
type usage struct {
	mu   sync.Mutex
	sums map[usageKey]*store.Used
}

type usageKey struct {
	flow flows.Flow
	hour int64
}

// add counts a request whose answer has begun. One that broke off has failed. Of a request whose
// client went, what had come was used.
func (u *usage) add(now time.Time, of flows.Flow, end *plan.RequestEnded) {
	if end.Status/100 != 2 {
		return
	}
	hour := now.UTC().Truncate(time.Hour)
	key := usageKey{flows.Flow{Class: of.Class, UseCase: of.UseCase, Tenant: of.Tenant},
		hour.Unix()}
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := u.sums[key]
	if sum == nil {
		sum = &store.Used{Tenant: of.Tenant, Model: of.UseCase, Class: of.Class, Hour: hour}
		if u.sums == nil {
			u.sums = map[usageKey]*store.Used{}
		}
		u.sums[key] = sum
	}
	sum.Requests++
	if end.Outcome == plan.Died {
		sum.Failed++
	}
	sum.Tokens.Add(batchfile.Usage{InputTokens: int64(end.PromptTokens),
		OutputTokens: int64(end.OutputTokens), CachedTokens: int64(end.CachedTokens),
		ReasoningTokens: int64(end.ReasoningTokens),
		TotalTokens:     int64(end.PromptTokens) + int64(end.OutputTokens)})
}

// take returns what was counted, and begins anew.
func (u *usage) take() (used []store.Used) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, sum := range u.sums {
		used = append(used, *sum)
	}
	clear(u.sums)
	return used
}
