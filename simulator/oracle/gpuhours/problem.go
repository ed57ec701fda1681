package gpuhours

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// Problem is the scenario. Times are seconds from its beginning.
type Problem struct {
	Cells []Cell
	Jobs  []Job
}

// Cell is a period of constant load and harvest.
type Cell struct {
	Seconds float64
	// Need is the replicas that are paid for in any case.
	Need float64
	// Rates is the batch work a second with 0, 1, 2 … replicas in total, up to the largest number;
	// it is linear in between. Need is within that range.
	Rates []float64
}

// WithPool adds replicas of another kind, each with the same rate, none of them needed.
func (c Cell) WithPool(most int, rate float64) Cell {
	var gains []float64
	need := int(math.Ceil(c.Need))
	for n := need + 1; n < len(c.Rates); n++ {
		gains = append(gains, c.Rates[n]-c.Rates[n-1])
	}
	for range most {
		gains = append(gains, rate)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	c.Rates = slices.Clone(c.Rates[:need+1])
	for _, g := range gains {
		c.Rates = append(c.Rates, c.Rates[len(c.Rates)-1]+g)
	}
	return c
}

// Job is released and due at once. Work is in the unit of Rates times seconds.
type Job struct{ Release, Due, Work float64 }

// Validate reports what is wrong with the problem.
func (p Problem) Validate() error {
	end := 0.0
	for i, c := range p.Cells {
		if !(c.Seconds > 0) || len(c.Rates) == 0 || !(c.Need >= 0) ||
			c.Need > float64(len(c.Rates)-1) {
			return fmt.Errorf("cell %d: %v seconds, %v needed of at most %d replicas", i, c.Seconds,
				c.Need, len(c.Rates)-1)
		}
		end += c.Seconds
	}
	for i, j := range p.Jobs {
		if !(j.Release >= 0) || !(j.Due > j.Release) || j.Due > end+1e-6 || !(j.Work > 0) {
			return fmt.Errorf(
				"job %d: work of %v from %v to %v, want work above 0 within the %v seconds",
				i, j.Work, j.Release, j.Due, end)
		}
	}
	return nil
}

// segment is the time between two instants at which work is released or due.
type segment struct {
	from, to float64
	free     float64 // harvest of the replicas that are needed anyway
	offers   []offer // the best first
}

// offer is harvest that can be bought: the gain of each replica-second, up to a number of them.
type offer struct{ gain, most float64 }

// gainTolerance is how much offers of a segment may differ, relative to the best, to count as equal
// to it. It makes the result too low by at most that share of what is bought.
const gainTolerance = 0.001

// segments divides the time at every release and deadline.
func (p Problem) segments() []segment {
	var at []float64
	for _, j := range p.Jobs {
		at = append(at, j.Release, j.Due)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var list []segment
	for i := range max(0, len(at)-1) {
		list = append(list, segment{from: at[i], to: at[i+1]})
	}
	begin, s := 0.0, 0
	for _, c := range p.Cells {
		end := begin + c.Seconds
		for s < len(list) && list[s].to <= begin {
			s++
		}
		for k := s; k < len(list) && list[k].from < end; k++ {
			list[k].add(c, min(end, list[k].to)-max(begin, list[k].from))
		}
		begin = end
	}
	for k := range list {
		list[k].merge()
	}
	return list
}

// add adds some seconds of a cell.
func (s *segment) add(c Cell, seconds float64) {
	if seconds <= 0 {
		return
	}
	s.free += portable.Rounded(c.rate(c.Need) * seconds)
	// Replicas beyond the need, best first: gains that grow with the number are levelled, which is
	// what mixing two numbers gives.
	var steps []offer
	for n := c.Need; n < float64(len(c.Rates)-1); {
		next := math.Floor(n) + 1
		steps = append(steps, offer{gain: (c.rate(next) - c.rate(n)) / (next - n),
			most: (next - n) * seconds})
		n = next
		for k := len(steps) - 1; k > 0 && steps[k].gain > steps[k-1].gain; k-- {
			a, b := steps[k-1], steps[k]
			steps[k-1] = offer{(portable.Rounded(a.gain*a.most) + portable.Rounded(b.gain*b.most)) /
				(a.most + b.most), a.most + b.most}
			steps = steps[:k]
		}
	}
	for _, o := range steps {
		if o.gain > 0 {
			s.offers = append(s.offers, o)
		}
	}
}

// rate returns the harvest a second with n replicas.
func (c Cell) rate(n float64) float64 {
	i := min(int(n), len(c.Rates)-1)
	if i == len(c.Rates)-1 {
		return c.Rates[i]
	}
	return c.Rates[i] + portable.Rounded((c.Rates[i+1]-c.Rates[i])*(n-float64(i)))
}

func (s *segment) merge() {
	slices.SortFunc(s.offers, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
	var merged []offer
	for _, o := range s.offers {
		if n := len(merged); n > 0 && o.gain >= merged[n-1].gain*(1-gainTolerance) {
			merged[n-1].most += o.most
			continue
		}
		merged = append(merged, o)
	}
	s.offers = merged
}

// condition states that what is released from one instant on and due until another must fit.
type condition struct {
	from, to int // stretches, to not included
	work     float64
}

// conditions returns the conditions of the jobs, for every release and every deadline.
func conditions(list []segment, jobs []Job) []condition {
	var all []condition
	for a := range list {
		if !slices.ContainsFunc(jobs, func(j Job) bool { return j.Release == list[a].from }) {
			continue
		}
		for b := a; b < len(list); b++ {
			work, due := 0.0, false
			for _, j := range jobs {
				if j.Release >= list[a].from && j.Due <= list[b].to {
					work += j.Work
					due = due || j.Due == list[b].to
				}
			}
			if due {
				all = append(all, condition{a, b + 1, work})
			}
		}
	}
	return all
}
