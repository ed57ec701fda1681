package cluster

import (
	"testing"
	"time"
)

func TestOutages(t *testing.T) {
	var o outages
	at := time.Unix(1000, 0)
	for i, step := range []struct {
		after, took  time.Duration
		failed, ends bool
	}{
		{after: 0, ends: false}, // no outage
		{after: time.Second, failed: true},
		{after: time.Second, took: 1500 * time.Millisecond}, // began before the failure
		{after: time.Second, failed: true},
		{after: time.Second, ends: true},
		{after: time.Second},
		{after: time.Second, failed: true}, // connections are made again
		{after: time.Second},
		{after: time.Minute, failed: true},
		{after: time.Second, ends: true},
	} {
		at = at.Add(step.after)
		if ends := o.note(at, step.took, step.failed); ends != step.ends {
			t.Errorf("step %d: an outage has ended: %v, want %v", i, ends, step.ends)
		}
	}
}
