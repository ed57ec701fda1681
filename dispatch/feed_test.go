package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
)

func TestFeedLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		lag := func() time.Duration {
			var m dto.Metric
			if err := f.Write(&m); err != nil {
				t.Fatal(err)
			}
			return time.Duration(m.GetGauge().GetValue() * float64(time.Second))
		}
		time.Sleep(3 * time.Second) // nothing is read
		if got := lag(); got != 3*time.Second {
			t.Errorf("before the first reading: %v, want 3s", got)
		}
		began := time.Now()
		time.Sleep(time.Second) // which a slow reading takes
		f.readUntil(began)
		if got := lag(); got != time.Second {
			t.Errorf("after a reading of 1s: %v, want 1s", got)
		}
	})
}
