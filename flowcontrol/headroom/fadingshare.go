package headroom

import (
	"time"
)

// fadingShare is the share of some requests in all, in which older ones fade with time.
type fadingShare struct {
	all, some float64
	at        time.Time
}

func (f *fadingShare) add(now time.Time, window time.Duration, all, some float64) {
	keep := kept(f.at, now, window)
	f.all = keep*f.all + all
	f.some = keep*f.some + some
	f.at = now
}

func (f *fadingShare) share() float64 {
	if f.all <= 0 {
		return 0
	}
	return f.some / f.all
}
