package inline

import (
	"sync"
	"sync/atomic"
)

// memory counts the bytes of bodies that are held. One tenant may hold half of the limit, so that
// others are served while it waits with as many large bodies as it can.
type memory struct {
	limit, used atomic.Int64

	mu sync.Mutex
	by map[string]int64 // bytes of tenants that hold any
}

// share is the memory of a tenant.
type share struct {
	of     *memory
	tenant string
}

// take counts n more bytes, unless the limits do not allow them.
func (s share) take(n int64) bool {
	m := s.of
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.limit.Load()
	if m.used.Load()+n > limit || m.by[s.tenant]+n > max(limit/2, holdBytes+1) {
		return false
	}
	if m.by == nil {
		m.by = make(map[string]int64)
	}
	m.by[s.tenant] += n
	m.used.Add(n)
	return true
}

func (s share) give(n int64) {
	if n == 0 { // of a body that was refused before any of it was read
		return
	}
	m := s.of
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Add(-n)
	if m.by[s.tenant] -= n; m.by[s.tenant] <= 0 {
		delete(m.by, s.tenant)
	}
}
