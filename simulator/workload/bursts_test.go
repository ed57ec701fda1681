package workload

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func burstsOf(t testing.TB, factor float64, length, gap time.Duration, seed uint64) *Bursts {
	t.Helper()
	b, err := NewBursts(factor, length, gap, dice(seed))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Over all seeds the multiplier has the mean 1 at any time, and bursts the configured lengths.
func TestBurstsKeepTheMean(t *testing.T) {
	for _, c := range []struct {
		factor      float64
		length, gap time.Duration
	}{{13, 2 * time.Second, time.Minute}, {3, 10 * time.Minute, 20 * time.Minute}} {
		const seeds = 4000
		atBegin, later, inBursts, bursts := 0.0, 0.0, time.Duration(0), 0
		for seed := range uint64(seeds) {
			b := burstsOf(t, c.factor, c.length, c.gap, seed)
			low, _ := b.at(0)
			m, _ := b.at(0)
			atBegin += m / seeds
			m, _ = b.at(c.gap)
			later += m / seeds
			for at := time.Duration(0); at < 4*c.gap; {
				m, end := b.at(at)
				if low = min(low, m); m > low {
					inBursts += end - at
					bursts++
				}
				at = end
			}
		}
		if math.Abs(atBegin-1) > 0.1 || math.Abs(later-1) > 0.1 {
			t.Errorf("%+v: the mean is %.3f at the beginning and %.3f later, want 1", c, atBegin,
				later)
		}
		if mean := inBursts / time.Duration(bursts); math.Abs(mean.Seconds()/c.length.Seconds()-1) >
			0.06 {
			t.Errorf("%+v: a burst has %v on average", c, mean)
		}
		low, high := math.Inf(1), 0.0
		b := burstsOf(t, c.factor, c.length, c.gap, 1)
		for at := time.Duration(0); at < 100*c.gap; {
			m, end := b.at(at)
			low, high, at = min(low, m), max(high, m), end
		}
		if math.Abs(high/low-c.factor) > 1e-9 {
			t.Errorf("%+v: %v in bursts and %v between them", c, high, low)
		}
	}
}

// After inverts the integral of the multiplier, whatever was asked before.
func TestAfterIsTheInverseOfTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := NewBursts(rapid.Float64Range(1, 20).Draw(t, "factor"), time.Second,
			rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "gap"), dice(1))
		if err != nil {
			t.Fatal(err)
		}
		draw := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, name))
		}
		b.at(draw("asked before"))
		from, passed := draw("from"), draw("passed")
		until := b.After(from, passed)
		sum := 0.0
		for at := from; at < until; {
			m, end := b.at(at)
			end = min(end, until)
			sum += m * (end - at).Seconds()
			at = end
		}
		if math.Abs(sum-passed.Seconds()) > 1e-6 {
			t.Fatalf("from %v to %v the integral is %v s, want %v", from, until, sum, passed)
		}
	})
}

// A retimed stream keeps its rate over hours and has the peaks of its bursts, with Poisson arrivals
// in them.
func TestRetimeWithBursts(t *testing.T) {
	const rate, hours, seeds = 4.0, 10, 8
	requests, peak := 0.0, 0.0
	for seed := range uint64(seeds) {
		bursts := burstsOf(t, 12, 10*time.Second, 10*time.Minute, seed)
		s, err := Retime(steady(10*time.Millisecond, 100*hours*3600*rate, ""), Timing{
			Rate: func(time.Duration) float64 { return rate }, Window: time.Second, VarMean: 1,
			Reference: rate, Bursts: bursts}, dice(seed+100))
		if err != nil {
			t.Fatal(err)
		}
		inside, within := 0.0, time.Duration(0)
		for a := range All(Until(s, hours*time.Hour)) {
			requests += 1.0 / seeds
			if m, _ := bursts.at(a.At); m > 1 {
				inside++
			}
		}
		for at := time.Duration(0); at < hours*time.Hour; {
			m, end := bursts.at(at)
			if end = min(end, hours*time.Hour); m > 1 {
				within += end - at
			}
			at = end
		}
		peak += inside / within.Seconds() / seeds
	}
	if mean := requests / (hours * 3600); math.Abs(mean/rate-1) > 0.05 {
		t.Errorf("%.3f requests a second, want %v", mean, rate)
	}
	// 12 / (1 + 11 x 10/610)
	if want := 10.17 * rate; math.Abs(peak/want-1) > 0.05 {
		t.Errorf("%.2f requests a second in bursts, want %.2f", peak, want)
	}
}

func TestBurstsRefuse(t *testing.T) {
	for _, b := range []struct {
		factor      float64
		length, gap time.Duration
	}{{0.5, 1, 1}, {math.NaN(), 1, 1}, {65, 1, 1}, {2, 0, 1}, {2, 1, 0}} {
		if _, err := NewBursts(b.factor, b.length, b.gap, dice(1)); err == nil {
			t.Errorf("%+v was taken", b)
		}
	}
}
