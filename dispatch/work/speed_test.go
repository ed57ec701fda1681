package work

import (
	"math"
	"testing"
	"time"
)

// The rate of a batch is right whether a result comes each millisecond or each ten seconds, and it
// falls when no more come.
func TestSpeed(t *testing.T) {
	for _, test := range []struct {
		every, steady time.Duration // between results, and from when on the rate is right
	}{
		{time.Millisecond, time.Second}, {300 * time.Millisecond, 5 * time.Second},
		{2 * time.Second, 20 * time.Second}, {10 * time.Second, 100 * time.Second},
	} {
		var s speed
		var now time.Duration
		at := func() float64 { return s.perSecond(time.Unix(1000, 0).Add(now)) }
		want := 1 / test.every.Seconds()
		results := 0
		for ; now < 5*time.Minute; now += 50 * time.Millisecond {
			if due := int(now / test.every); due > results {
				s.add(due - results)
				results = due
			}
			got := at()
			if now > test.steady && math.Abs(got-want) > 0.4*want {
				t.Fatalf("a result each %v: %.3f per second after %v", test.every, got, now)
			}
		}
		for end := now + 3*time.Minute; now < end; now += 50 * time.Millisecond {
			at()
		}
		if got := at(); got != 0 {
			t.Errorf("a result each %v: %.3f per second long after the last", test.every, got)
		}
	}
}
