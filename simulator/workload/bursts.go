package workload

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// Bursts is a random process that multiplies a rate: bursts of exponential lengths that come after
// exponential pauses. Its mean is 1, so that bursts take from the traffic between them. Times may
// be asked for in any order.
type Bursts struct {
	multiplier [2]float64 // between bursts, and in them
	mean       [2]float64 // seconds
	first      int        // 1: it begins in a burst
	ends       []time.Duration
	rng        *rand.Rand
}

// NewBursts returns bursts with factor times the rate that is between them. Their mean length and
// the mean pause between them are given.
func NewBursts(factor float64, length, gap time.Duration, rng *rand.Rand) (*Bursts, error) {
	if !(factor >= 1 && factor <= maxFactor) || length <= 0 || gap <= 0 {
		return nil, fmt.Errorf(
			"bursts of factor %v and %v after pauses of %v: want a factor from 1 to %d and times "+
				"above 0", factor, length, gap, maxFactor)
	}
	share := length.Seconds() / (length.Seconds() + gap.Seconds()) // of the time
	between := 1 / (1 + (factor-1)*share)
	b := &Bursts{multiplier: [2]float64{between, factor * between},
		mean: [2]float64{gap.Seconds(), length.Seconds()}, rng: rng}
	if rng.Float64() < share {
		b.first = 1
	}
	return b, nil
}

// at returns the multiplier at an instant, and when it ends.
func (b *Bursts) at(t time.Duration) (multiplier float64, end time.Duration) {
	last := time.Duration(0)
	if n := len(b.ends); n > 0 {
		last = b.ends[n-1]
	}
	for last <= t {
		mean := b.mean[(b.first+len(b.ends))%2]
		last += 1 + time.Duration(portable.Exponential(b.rng)*mean*1e9)
		b.ends = append(b.ends, last)
	}
	i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i] > t })
	return b.multiplier[(b.first+i)%2], b.ends[i]
}

// After returns when a time has passed since an instant, if it passes as many times as fast as the
// multiplier says.
func (b *Bursts) After(from, passed time.Duration) time.Duration {
	need := passed.Seconds()
	for {
		multiplier, end := b.at(from)
		left := multiplier * (end - from).Seconds()
		if left > need {
			return from + time.Duration(need/multiplier*1e9)
		}
		need -= left
		from = end
	}
}
