package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

const (
	// requireInterval is the least interval at which the lines that deadlines require are reported
	// to flow control.
	requireInterval = 10 * time.Second
	// requireJobs limits the jobs evaluated per second for that.
	requireJobs = 1000
	// workMargin multiplies the estimate of the work. timeReserve is the share of the time left
	// that is kept free for the last lines.
	workMargin  = 1.1
	timeReserve = 0.05
)

// reportRequired reports to flow control the number of lines that each pool must have in flight to
// meet its deadlines. That is, for each deadline, the work due until then divided by the time left
// and by the work per second of a line. It sets by when jobs must be done, too.
func (p *Planner) reportRequired(now time.Time) {
	if now.Before(p.nextRequired) {
		return
	}
	p.nextRequired = now.Add(max(requireInterval,
		time.Duration(len(p.jobs))*time.Second/requireJobs))
	p.recount()
	for _, pool := range p.pools {
		due := p.due(pool)
		pool.setDoneBy(now, due, p.cfg.Cost.AssumedRate)
		pool.observe(now, &flowcontrol.DeadlineDemand{Lines: pool.requiredLines(now, due)})
	}
}

// recount updates the work left of jobs whose lines in flight got tokens, and ranks them again if
// it has changed much.
func (p *Planner) recount() {
	p.updateLengths()
	for _, id := range p.jobIDs() {
		if j := p.jobs[id]; j.ages.tokens > 0 {
			j.work = p.workLeft(j)
			p.rankIfChanged(j)
		}
	}
}

// due returns the jobs of a pool that have a feasible deadline, the earliest first.
func (p *Planner) due(pool *pool) []*job {
	var due []*job
	for _, j := range p.jobs {
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

// requiredLines returns the lines that the deadlines of the jobs require. 0: none, or the rate of
// the pool is unknown.
func (p *pool) requiredLines(now time.Time, due []*job) (lines float64) {
	perLine := p.rate.perSecond() / float64(max(1, p.inFlight))
	if perLine <= 0 {
		return 0
	}
	work := 0.0
	for _, j := range due {
		work += j.work
		left := (1 - timeReserve) * j.batch.Deadline.Sub(now).Seconds()
		lines = max(lines, workMargin*work/(perLine*max(left, 1)))
	}
	return lines
}
