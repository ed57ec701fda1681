package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// tailed returns token times of which a tenth exceed 50 ms and a hundredth exceeds 100 ms, while
// batch work added some milliseconds.
func tailed(requests, added float64) (t tokenTimes) {
	buckets := func(n float64) []flowcontrol.Bucket {
		return []flowcontrol.Bucket{{Upper: 0.05, Count: 0.9 * n}, {Upper: 0.1, Count: 0.99 * n},
			{Upper: math.Inf(1), Count: n}}
	}
	t.read(noon, buckets(1e6), 0) // before
	t.read(noon.Add(time.Second), buckets(1e6+requests), added)
	return t
}

func TestTokenTimesFallExponentially(t *testing.T) {
	times := tailed(1e6, 0)
	for _, test := range []struct{ ms, want float64 }{
		{0, 1}, {50, 0.1}, {75, math.Sqrt(0.1 * 0.01)}, {100, 0.01},
	} {
		if got := times.above(test.ms); !near(got, test.want) {
			t.Errorf("a share of %v exceeds %v ms, want %v", got, test.ms, test.want)
		}
	}
}

func TestAllowedTokenTime(t *testing.T) {
	// 3.16 % exceed 75 ms, 1 % exceed 100 ms whatever is added.
	late := math.Sqrt(0.1*0.01) - 0.01
	times := tailed(1e6, 0)
	if got := times.allowed(100, late); !near(got, 25) {
		t.Errorf("%v ms may be added, want 25", got)
	}
	// The same times with 20 ms of batch work in them: at most those 20 ms are ours.
	times = tailed(1e6, 20)
	if got := times.allowed(80, late); !near(got, 25) {
		t.Errorf("%v ms may be added to what took 20 ms less, want 25", got)
	}
	if more := times.allowed(80, 2*late); more <= 25 {
		t.Errorf("%v ms may be added so that twice as many are late", more)
	}
}

func TestFewTokenTimesBoundNothing(t *testing.T) {
	times := tailed(fewTokenTimes-1, 0)
	if got := times.allowed(100, 0.001); !math.IsInf(got, 1) {
		t.Errorf("%v ms after %v requests, want no bound", got, times.total)
	}
}

// A histogram that restarts counts nothing twice.
func TestTokenTimesThatRestart(t *testing.T) {
	times := tailed(100, 0)
	times.read(noon.Add(2*time.Second), []flowcontrol.Bucket{{Upper: 0.05, Count: 5},
		{Upper: 0.1, Count: 5}, {Upper: math.Inf(1), Count: 5}}, 0)
	if times.total > 100 {
		t.Errorf("%v requests, want 100 at most", times.total)
	}
}
