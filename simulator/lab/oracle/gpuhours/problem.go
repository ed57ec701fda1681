package gpuhours

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Problem describes the pool and the jobs of a scenario. Times are seconds from the scenario's
// beginning.
type Problem struct {
	Periods []Period // in order, without gaps, from time 0
	Jobs    []Job
}

// Period is a length of time during which load and harvest are constant.
type Period struct {
	Seconds float64
	// Need is the number of replicas that are paid for even without batch work.
	Need float64
	// Rates[n] is the batch work done per second with n replicas in total. The rate of a number
	// between n and n+1 is interpolated. Need is at most len(Rates)-1.
	Rates []float64
}

// WithPool returns the period with up to count further replicas, each of which does rate of batch
// work per second. None of them counts for Need.
func (c Period) WithPool(count int, rate float64) Period {
	var gains []float64
	need := int(math.Ceil(c.Need))
	for n := need + 1; n < len(c.Rates); n++ {
		gains = append(gains, c.Rates[n]-c.Rates[n-1])
	}
	for range count {
		gains = append(gains, rate)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	c.Rates = slices.Clone(c.Rates[:need+1])
	for _, g := range gains {
		c.Rates = append(c.Rates, c.Rates[len(c.Rates)-1]+g)
	}
	return c
}

// Job is work that may start at Release and must end by Due. Work is in the unit of Rates times
// seconds.
type Job struct{ Release, Due, Work float64 }

// Validate returns an error for the first period or job that is invalid.
func (p Problem) Validate() error {
	end := 0.0
	for i, c := range p.Periods {
		if !(c.Seconds > 0) || len(c.Rates) == 0 || !(c.Need >= 0) ||
			c.Need > float64(len(c.Rates)-1) {
			return fmt.Errorf("period %d: %v seconds, %v needed of at most %d replicas", i,
				c.Seconds,
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

// segment is the time between two consecutive instants at which work is released or due.
type segment struct {
	from, to float64
	free     float64 // harvest of the needed replicas, which costs nothing more
	offers   []offer // further harvest, the highest gain first
}

// offer is harvest that can be bought with further replicas.
type offer struct {
	gain    float64 // batch work done per replica-second bought
	seconds float64 // replica-seconds that can be bought at most
}

// gainTolerance is the relative difference of gains below which offers of a segment are merged. The
// merged offer has the higher gain, so the replica-hours bought are too low by at most this share.
const gainTolerance = 0.001

// segments divides the time at every release and every deadline.
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
	for _, c := range p.Periods {
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

// add adds the harvest of some seconds of a period to the segment.
func (s *segment) add(c Period, seconds float64) {
	if seconds <= 0 {
		return
	}
	s.free += c.rate(c.Need) * seconds
	// Offer the replicas beyond the need one by one. Where a replica gains more than the one before
	// it, both become one offer with their mean gain: alternating between the smaller and the
	// larger number of replicas gives that mean.
	var steps []offer
	for n := c.Need; n < float64(len(c.Rates)-1); {
		next := math.Floor(n) + 1
		steps = append(steps, offer{gain: (c.rate(next) - c.rate(n)) / (next - n),
			seconds: (next - n) * seconds})
		n = next
		for k := len(steps) - 1; k > 0 && steps[k].gain > steps[k-1].gain; k-- {
			a, b := steps[k-1], steps[k]
			both := a.seconds + b.seconds
			steps[k-1] = offer{gain: (a.gain*a.seconds +
				b.gain*b.seconds) / both, seconds: both}
			steps = steps[:k]
		}
	}
	for _, o := range steps {
		if o.gain > 0 {
			s.offers = append(s.offers, o)
		}
	}
}

// rate returns the harvest per second with n replicas.
func (c Period) rate(n float64) float64 {
	i := min(int(n), len(c.Rates)-1)
	if i == len(c.Rates)-1 {
		return c.Rates[i]
	}
	return c.Rates[i] + (c.Rates[i+1]-c.Rates[i])*(n-float64(i))
}

// merge sorts the offers by gain and merges those that differ by less than gainTolerance.
func (s *segment) merge() {
	slices.SortFunc(s.offers, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
	var merged []offer
	for _, o := range s.offers {
		if n := len(merged); n > 0 && o.gain >= merged[n-1].gain*(1-gainTolerance) {
			merged[n-1].seconds += o.seconds
			continue
		}
		merged = append(merged, o)
	}
	s.offers = merged
}

// condition requires that the segments from index from up to, not including, to provide enough
// harvest for the jobs that are both released and due within them.
type condition struct {
	from, to int     // indices of segments
	work     float64 // of these jobs
}

// conditions returns a condition for every pair of a release and a later deadline.
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
				all = append(all, condition{from: a, to: b + 1, work: work})
			}
		}
	}
	return all
}
