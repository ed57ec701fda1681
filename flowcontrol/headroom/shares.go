package headroom

import (
	"time"
)

// shares is the distribution of a latency relative to its objective, over the interactive requests
// of the last half hour. 1 is the objective.
type shares struct {
	bins  [shareBins]float64
	total float64
	at    time.Time
}

const (
	shareBins   = 100
	maxShare    = 2.0 // values above count as that
	shareMemory = 30 * time.Minute
)

// fade lets older values count less.
func (s *shares) fade(now time.Time) {
	keep := kept(s.at, now, shareMemory)
	for i := range s.bins {
		s.bins[i] *= keep
	}
	s.total *= keep
	s.at = now
}

// add counts a value with a weight.
func (s *shares) add(value, weight float64) {
	i := int(value * (shareBins / maxShare))
	s.bins[min(max(i, 0), shareBins-1)] += weight
	s.total += weight
}

// spread counts values that are evenly spread between two bounds.
func (s *shares) spread(from, to, weight float64) {
	const parts = 8
	for i := range parts {
		s.add(from+(to-from)*(float64(i)+0.5)/parts, weight/parts)
	}
}

// threshold returns the value below the objective above which, up to the objective, lie no more
// than the given share of all values. Values above the objective do not count: they exceed it
// whatever is added to them. 1: the share lies at once below the objective.
func (s *shares) threshold(share float64) float64 {
	left := share * s.total
	const objective = shareBins / maxShare
	for i := int(objective) - 1; i >= 0; i-- {
		if s.bins[i] > left {
			return (float64(i) + 1 - left/s.bins[i]) / objective
		}
		left -= s.bins[i]
	}
	return 0
}

// between returns the share of all values from a value up to the objective.
func (s *shares) between(from float64) float64 {
	const objective = shareBins / maxShare
	sum := 0.0
	for i := int(objective) - 1; i >= 0; i-- {
		low := float64(i) / objective
		if low >= from {
			sum += s.bins[i]
			continue
		}
		sum += s.bins[i] * max(0, (low+1/objective-from)*objective)
		break
	}
	return sum / max(s.total, 1e-9)
}

// quantile returns the value that no more than a share of all exceeds.
func (s *shares) quantile(above float64) float64 {
	left := above * s.total
	for i := shareBins - 1; i >= 0; i-- {
		if s.bins[i] > left {
			return float64(i+1) * (maxShare / shareBins)
		}
		left -= s.bins[i]
	}
	return 0
}
