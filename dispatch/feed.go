package dispatch

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// feed knows up to when this process has read the changes of batches.
type feed struct {
	prometheus.GaugeFunc
	read atomic.Pointer[time.Time] // every change before it was read
}

// newFeed returns a feed of which nothing was read before now.
func newFeed() *feed {
	f := &feed{}
	f.readUntil(time.Now())
	f.GaugeFunc = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_change_feed_lag_seconds",
		Help: "Time since this process began its last complete read of changed batches: changes " +
			"by other processes are noticed at most so much later. It stays below a few times " +
			"dispatch.tuning.poll_every unless the store is away or slow.",
	}, func() float64 { return f.age().Seconds() })
	return f
}

// readUntil notes that all changes before a time were read: the reading began then.
func (f *feed) readUntil(began time.Time) { f.read.Store(&began) }

// age returns the time since then.
func (f *feed) age() time.Duration { return time.Since(*f.read.Load()) }
