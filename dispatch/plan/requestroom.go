package plan

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// requestRoom is the number of requests, lines included, that a runner computes at once, as far as
// its engine has shown: beyond it they wait inside. An engine whose readings show none that waits
// is tried with more.
type requestRoom struct {
	limit       float64 // 0: nothing has shown one
	kvUsed      float64 // of the last reading
	pausedUntil time.Time
}

const (
	// kvFull is the share of the KV cache from which an engine may have to stop requests that run.
	kvFull = 0.95
	// roomGrowth is the share by which a limit grows with a reading that shows nothing that waits.
	roomGrowth = 0.05
	// longestRequestPause limits the pause that an engine can ask for with Retry-After.
	longestRequestPause = 5 * time.Second
)

// requestPlaces returns the number of requests that may be in flight on the runner.
func (r *runner) requestPlaces(now time.Time) int {
	if r.stop != Flowing || r.draining || r.pool.closed || r.pausedUntil.After(now) ||
		r.room.pausedUntil.After(now) {
		return 0
	}
	places := r.pool.maxRequests
	if r.room.limit > 0 {
		places = min(places, max(1, int(r.room.limit)))
	}
	if r.breaker.open {
		places = min(places, r.requests+r.breaker.admits(now))
	}
	return places
}

// requestRoom returns the number of requests that may start on the runner now.
func (r *runner) requestRoom(now time.Time) int {
	if r.room.kvUsed >= kvFull && r.requests > 0 && r.requested.metricsUntil.After(now) {
		return 0
	}
	return r.requestPlaces(now) - r.requests - r.inFlight
}

// read takes over a reading of the runner's engine.
func (r *runner) readRoom(m *flowcontrol.Reading) {
	r.room.kvUsed = m.KVUsed
	if m.KVTokens > 0 {
		r.pool.routes.Limit(r.id, int(m.KVTokens))
	}
	ours := float64(r.requests + r.inFlight)
	switch {
	case math.IsNaN(m.Waiting):
	case m.Waiting >= 1 && ours > 0:
		all := max(ours, m.Waiting)
		if m.Running > 0 {
			all = max(all, m.Running+m.Waiting)
		}
		r.room.limit = max(1, ours*(1-m.Waiting/all))
	default:
		r.growRoom(max(1, roomGrowth*r.room.limit))
	}
}

// growRoom raises the limit of a runner that is near it.
func (r *runner) growRoom(by float64) {
	if r.room.limit == 0 || float64(r.requests+r.inFlight) < r.room.limit-2 {
		return
	}
	if r.room.limit += by; r.room.limit >= float64(r.pool.maxRequests) {
		r.room.limit = 0
	}
}

// full notes that the engine takes no more than a number of requests.
func (r *runner) full(requests int) {
	r.room.limit = float64(max(1, requests))
}

// pauseRequests keeps requests from the runner until a time.
func (r *runner) pauseRequests(until time.Time) {
	if until.After(r.room.pausedUntil) {
		r.room.pausedUntil = until
	}
}
