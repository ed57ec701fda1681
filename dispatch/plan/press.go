package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

const (
	// pressEvery is how often flow control hears what deadlines ask for, at least: they come nearer
	// no faster than that.
	pressEvery = 10 * time.Second
	// pressJobs is how many jobs may be looked at a second for that.
	pressJobs = 1000
	// pressMargin is what the work is taken for beyond its estimate, and pressEnd the share of the
	// time left that is kept for stragglers.
	pressMargin = 1.1
	pressEnd    = 0.05
)

// press tells flow control how many lines each pool would have to carry for its deadlines to be
// met: for each deadline, the work due by then over the time until then, at the pace of a line.
func (p *Planner) press(now time.Time) {
	if now.Before(p.pressAt) {
		return
	}
	p.pressAt = now.Add(max(pressEvery, time.Duration(len(p.byID))*time.Second/pressJobs))
	p.reckon()
	for _, pool := range p.pools {
		pool.observe(now, flowcontrol.Observation{Kind: flowcontrol.Pressed, Lines: pool.pressed(
			now, p.due(pool))})
	}
}

// reckon counts anew what is left of jobs whose lines under way have grown, and ranks them if that
// is much more.
func (p *Planner) reckon() {
	p.lookAtAges()
	for _, id := range p.jobIDs() {
		if j := p.byID[id]; j.ages.tokens > 0 {
			j.work = p.workLeft(j)
			p.rankIfMoved(j)
		}
	}
}

// due lists the jobs of a pool that have a deadline, the earliest first.
func (p *Planner) due(pool *pool) []*job {
	var due []*job
	for _, j := range p.byID {
		if j.lines > 0 && !j.batch.Paused && !j.batch.infeasible && !j.batch.Deadline.IsZero() &&
			slices.Contains(j.pools, pool) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *job) int {
		return cmp.Or(a.batch.Deadline.Compare(b.batch.Deadline), cmp.Compare(a.id, b.id))
	})
	return due
}

// pressed is how many lines it takes; 0 while nobody knows what a line brings.
func (p *pool) pressed(now time.Time, due []*job) (lines float64) {
	perLine := p.rate.perSecond() / float64(max(1, p.inFlight))
	if perLine <= 0 {
		return 0
	}
	work := 0.0
	for _, j := range due {
		work += j.work
		left := (1 - pressEnd) * j.batch.Deadline.Sub(now).Seconds()
		lines = max(lines, pressMargin*work/(perLine*max(left, 1)))
	}
	return lines
}
