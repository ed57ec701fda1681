package headroom

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// alone estimates how the pool would do without batch work. Times are in milliseconds. Packed
// runners do not count: the router sends interactive requests to the others.
type alone struct {
	// iteration is the mean time of iterations over some minutes.
	iteration slowMean
	// shares is the distribution of that time relative to the objective, over interactive requests.
	shares shares
	// now is the mean over the runners at the last second; 0: no runner shows it.
	now float64
	// withLines is the same with the batch lines that decode, without their prompts.
	withLines float64
	// usual is the median over the runners.
	usual float64
	times []float64
}

// updateAlone takes over what the pool's runners show now.
func (c *Controller) updateAlone(now time.Time) {
	c.alone.shares.fade(now)
	c.answersAlone.fade(now)
	sum, with, n := 0.0, 0.0, 0.0
	times := c.alone.times[:0]
	for _, m := range c.roster.Members {
		r := m.State
		it := &r.iterations
		if r.packed > 0 || it.base.mean() <= 0 || !c.recent(now, it.seenAt) {
			continue
		}
		time := c.timeAlone(r)
		if now.Sub(it.quietAt) > quietAfter && c.alone.iteration.age > 0 {
			// While prompts are computed all the time this is an estimate, which must not confirm
			// itself: a higher one lets more of them run.
			time = min(time, c.alone.iteration.mean())
		}
		c.alone.shares.add(time/max(c.objectiveTime(), 1), r.interactive.running.mean+0.01)
		sum += time
		times = append(times, time)
		with += it.base.mean()
		n++
	}
	c.alone.times = times
	if n == 0 {
		c.alone.now = 0
		return
	}
	slices.Sort(times)
	c.alone.usual = times[len(times)/2]
	c.alone.now, c.alone.withLines = sum/n, with/n
	c.alone.iteration.add(now, c.alone.now)
}

// timeAlone returns how long iterations of a runner would take without batch lines: no longer than
// they take with these, which shows a fast engine before its cost model is fitted.
func (c *Controller) timeAlone(r *runner) float64 {
	base := r.iterations.atBase(&c.fit) -
		portable.Rounded(float64(r.own.lines)*c.fit.perSequence())
	alone := max(base, c.fit.perIteration(), 1)
	if measured := r.iterations.all.mean(); measured > 0 {
		alone = min(alone, measured)
	}
	return alone
}

// addedTime returns what batch work adds to the mean iteration now.
func (c *Controller) addedTime() float64 {
	sum, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 && r.iterations.all.mean() > 0 {
			sum += max(0, r.iterations.all.mean()-c.timeAlone(r))
			n++
		}
	}
	return sum / max(n, 1)
}

// slowMean is a mean over aloneWindow, and over all of the time before there was as much.
type slowMean struct {
	value, age float64 // age is in seconds
	at         time.Time
}

const (
	aloneWindow = 5 * time.Minute
	// longestStep is how much time one value counts for at most.
	longestStep = 20 * time.Second
)

func (s *slowMean) add(now time.Time, value float64) {
	if s.at.IsZero() {
		s.value, s.at = value, now
		return
	}
	dt := min(now.Sub(s.at), longestStep).Seconds()
	s.at = now
	s.age += dt
	s.value += portable.Rounded((value - s.value) * (dt / (min(s.age, aloneWindow.Seconds()) + dt)))
}

func (s *slowMean) mean() float64 { return s.value }
