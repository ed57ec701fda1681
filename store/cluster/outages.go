package cluster

import (
	"sync"
	"time"
)

// Events of failovers.
const (
	outageEvent    = "outage"
	promotionEvent = "promotion"
)

// sameOutage is the time within which failures belong to the outage that has just ended: many
// transactions fail and succeed while connections are made again.
const sameOutage = 5 * time.Second

// outages finds the ends of outages in the results of transactions.
type outages struct {
	mu     sync.Mutex
	failed time.Time // last failure of the outage that lasts; zero: none lasts
	ended  time.Time // when the last one ended; zero: there was none
}

// note takes the result of a transaction that ends now. It reports whether an outage has ended: a
// transaction succeeded that began after the last failure.
func (o *outages) note(now time.Time, took time.Duration, failed bool) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case failed:
		o.failed = now
		return false
	case o.failed.IsZero() || now.Add(-took).Before(o.failed):
		return false
	}
	o.failed = time.Time{}
	same := !o.ended.IsZero() && now.Sub(o.ended) < sameOutage
	o.ended = now
	return !same
}
