package inline

import "sync/atomic"

// memory counts the bytes of bodies that are held.
type memory struct {
	limit, used atomic.Int64
}

// take counts n more bytes, unless the limit does not allow them.
func (m *memory) take(n int64) bool {
	if m.used.Add(n) <= m.limit.Load() {
		return true
	}
	m.used.Add(-n)
	return false
}

func (m *memory) give(n int64) { m.used.Add(-n) }
