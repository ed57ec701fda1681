package simulator

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// sketch holds the distribution of times in memory that does not grow with their number: in buckets
// whose width is a two-thousandth of their value. A quantile is the mean of its bucket, so it is
// exact where all times in the bucket are equal.
type sketch struct {
	count   int
	buckets []bucket
}

type bucket struct {
	count int
	sum   time.Duration
}

// indexBits is the number of leading bits of a time that select its bucket.
const indexBits = 11

// bucketIndex returns the index of a time's bucket. The first 1<<indexBits nanoseconds have a
// bucket each; after that every doubling has 1<<(indexBits-1).
func bucketIndex(t time.Duration) int {
	shift := max(0, bits.Len64(uint64(t))-indexBits)
	return shift<<(indexBits-1) + int(t>>shift)
}

func (s *sketch) add(t time.Duration) {
	i := bucketIndex(max(0, t))
	s.reach(i + 1)
	s.count++
	s.buckets[i].count++
	s.buckets[i].sum += t
}

// reach grows the buckets to at least n.
func (s *sketch) reach(n int) {
	if n > len(s.buckets) {
		s.buckets = slices.Grow(s.buckets, n-len(s.buckets))[:n]
	}
}

// merge adds what another sketch holds.
func (s *sketch) merge(o *sketch) {
	s.reach(len(o.buckets))
	s.count += o.count
	for i, b := range o.buckets {
		s.buckets[i].count += b.count
		s.buckets[i].sum += b.sum
	}
}

// quantiles returns quantiles in milliseconds: the smallest times that the share of all does not
// exceed.
func (s *sketch) quantiles() Quantiles {
	return Quantiles{P50: s.quantile(0.50), P95: s.quantile(0.95), P99: s.quantile(0.99)}
}

func (s *sketch) quantile(q float64) float64 {
	rank := max(1, int(math.Ceil(q*float64(s.count))))
	below := 0
	for _, b := range s.buckets {
		if below += b.count; below >= rank {
			return float64(b.sum) / float64(b.count) / float64(time.Millisecond)
		}
	}
	return 0
}
