package headroom

import (
	"math"
	"slices"
	"time"
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
	// seen is what was seen while no line ran.
	seen aloneSeen
}

// aloneSeen is the mean time of iterations while no line ran, and the load of users then.
type aloneSeen struct {
	time, running, promptRate float64
	seconds                   float64
}

const (
	// afterLines is the time without lines after which iterations are those of users alone.
	afterLines = 5 * time.Second
	// seenWeight is the weight of a second in what was seen, once there are as many.
	seenWeight = 1.0 / 30
	// generousCost is the factor by which users may cost more than the cost model says.
	generousCost = 2
)

// add takes over a second without lines.
func (a *aloneSeen) add(ms, running, promptRate float64) {
	a.seconds++
	weight := max(seenWeight, 1/a.seconds)
	a.time += weight * (ms - a.time)
	a.running += weight * (running - a.running)
	a.promptRate += weight * (promptRate - a.promptRate)
}

// maxAloneNow returns the longest time that the mean iteration takes without lines now, in
// milliseconds. It is what was seen while none ran, and the cost of the users that have come since.
// The cost of lines by the cost model is subtracted from what is measured with them. If lines cost
// more, iterations without lines would seem to take longer. An objective that is relative to them
// would then grow with each line.
func (c *Controller) maxAloneNow() float64 {
	a := &c.alone.seen
	l, known := c.load()
	if a.time == 0 || !known || !c.slo.Relative() {
		return math.Inf(1)
	}
	more := c.fit.perSequence()*max(0, l.Running-a.running) +
		c.fit.perToken()*max(0, l.PromptRate-a.promptRate)*a.time/1000
	return a.time + generousCost*more
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
	c.alone.now, c.alone.withLines = min(sum/n, c.maxAloneNow()), with/n
	if l, known := c.load(); known && now.Sub(c.carriedAt) > afterLines {
		c.alone.seen.add(sum/n, l.Running, l.PromptRate)
	}
	c.alone.iteration.add(now, c.alone.now)
}

// timeAlone returns the estimated time of a runner's iterations without batch lines, in
// milliseconds. It is no longer than the time with them, which shows a fast engine before its cost
// model is fitted.
func (c *Controller) timeAlone(r *runner) float64 {
	base := r.iterations.atBase(&c.fit) -
		float64(r.own.lines)*c.fit.perSequence()
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
	// longestStep is the longest time for which one value counts.
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
	s.value += (value - s.value) * (dt / (min(s.age, aloneWindow.Seconds()) + dt))
}

func (s *slowMean) mean() float64 { return s.value }
