package httpserver

import "time"

// budget is the time that a transfer may still wait for its client. Waiting spends it; transferred
// bytes refill it, up to full.
type budget struct {
	rate int64 // bytes per second; 0: any byte refills it
	full time.Duration
	left time.Duration
}

func newBudget(rate int64, full time.Duration) budget { return budget{rate, full, full} }

// worth returns the time that n bytes may take.
func (b *budget) worth(n int) time.Duration {
	if b.rate == 0 {
		return b.full
	}
	return time.Duration(float64(n) / float64(b.rate) * float64(time.Second))
}

// spend accounts for n bytes that were transferred in the given time.
func (b *budget) spend(took time.Duration, n int) {
	b.left -= took
	if n > 0 {
		b.left = min(b.left+b.worth(n), b.full)
	}
}
