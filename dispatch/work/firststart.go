package work

import (
	"sync/atomic"
	"time"
)

// firstStart notes when the first line of a batch with a StartBy was sent. The loop writes it, the
// reconciler reads it.
type firstStart struct {
	wanted bool
	at     atomic.Int64 // Unix nanoseconds; 0: not in this session
}

// note notes a start, and reports whether it is the first that matters.
func (f *firstStart) note() bool {
	return f.wanted && f.at.Load() == 0 && f.at.CompareAndSwap(0, time.Now().UnixNano())
}

// time returns the zero time if no line was sent in this session.
func (f *firstStart) time() time.Time {
	if at := f.at.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
