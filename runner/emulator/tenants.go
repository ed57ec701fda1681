package emulator

import (
	"sync"
	"time"
)

// defaultTenant names the limit of tenants without a limit of their own.
const defaultTenant = "default"

// tenants counts requests by tenant within the present minute.
type tenants struct {
	rates map[string]int

	mu     sync.Mutex
	minute time.Time
	counts map[string]int
}

func newTenants(rates map[string]int) *tenants { return &tenants{rates: rates} }

// admit counts a request, or refuses it until the minute ends.
func (t *tenants) admit(tenant string, now time.Time) *failure {
	if len(t.rates) == 0 {
		return nil
	}
	if tenant == "" {
		tenant = defaultTenant
	}
	limit, ok := t.rates[tenant]
	if !ok {
		limit, ok = t.rates[defaultTenant]
	}
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(t.minute) {
		t.minute, t.counts = minute, map[string]int{}
	}
	if t.counts[tenant] >= limit {
		return rateLimited(tenant, limit, now, t.minute.Add(time.Minute))
	}
	t.counts[tenant]++
	return nil
}
