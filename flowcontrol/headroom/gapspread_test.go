package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestNormalTail(t *testing.T) {
	for z := -4.0; z <= 4; z += 0.25 {
		want := math.Erfc(z/math.Sqrt2) / 2
		if got := normalTail(z); !near(got, want) {
			t.Errorf("above %v deviations are %v, want %v", z, got, want)
		}
	}
}

func TestGapVariance(t *testing.T) {
	buckets := func(counts ...float64) []flowcontrol.Bucket {
		b := []flowcontrol.Bucket{{Upper: 0.02}, {Upper: 0.04}, {Upper: 0.2}, {Upper: math.Inf(1)}}
		for i := range b {
			b[i].Count = counts[i]
		}
		return b
	}
	for _, test := range []struct {
		name          string
		before, after []flowcontrol.Bucket
		want          float64
	}{
		{"all in a bucket", buckets(5, 5, 5, 5), buckets(5, 105, 105, 105), 0},
		{"half at 30 and half at 120 ms", buckets(5, 5, 5, 5), buckets(5, 15, 25, 25), 45 * 45},
		{"one gap", buckets(5, 5, 5, 5), buckets(5, 5, 6, 6), 0},
		{"counters that started again", buckets(50, 50, 50, 50), buckets(5, 5, 5, 5), 0},
		{"other buckets", buckets(5, 5, 5, 5)[:2], buckets(5, 5, 25, 25), 0},
		{"no histogram", nil, nil, 0},
	} {
		if got := gapVariance(test.before, test.after); math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// Where a reading covers many answers, some of them are late although their mean is in time: those
// that met more prompts.
func TestVirtualAnswersOfLongReadingsDiffer(t *testing.T) {
	counted := true // by a gateway
	late := func(iterations, variance float64, every time.Duration) float64 {
		c, runners := newPool(t, nil, "r") // whose objective is 100 ms
		if counted {
			c.virtual.real.add(noon, realWindow, 1000, 0)
		}
		r := runners[0]
		r.own.lines, r.gapVariance, r.iterations.every = 100, variance, every
		r.interactive.running.mean = 1
		c.countVirtual(noon, r, iterations, 90, 0)
		return c.virtual.late / max(c.virtual.requests, 1e-9)
	}
	if got := late(2000, 0, 30*time.Second); got != 0 {
		t.Errorf("a share of %v is late where nothing shows that gaps differ", got)
	}
	const every = 30 * time.Second
	even, uneven := late(2000, 10*10, every), late(2000, 60*60, every)
	if even > 0.02 || uneven < 0.05 || uneven > 0.5 {
		t.Errorf("shares of %v and %v are late where gaps differ by 10 and by 60 ms", even, uneven)
	}
	if got := late(15, 60*60, every); got != 0 {
		t.Errorf("a share of %v is late of an answer whose iterations were all observed", got)
	}
	if got := late(2000, 60*60, time.Second); got != 0 {
		t.Errorf("a share of %v is late where each second was observed", got)
	}
	if counted = false; late(2000, 60*60, time.Second) < 0.05 {
		t.Error("none is late where each second was observed, and nobody counts late answers")
	}
}
