package plan

import (
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// doneByStep is the change of the time by which a job must be done from which on the job is ranked
// again. It is much less than the guard time of urgent jobs.
const doneByStep = 30 * time.Second

// setDoneBy sets when each job of the pool must be done so that those due later can meet their
// deadlines too: all work as late as possible, in the order of deadlines. Each job alone may have
// time left while all together have none, and jobs that share get ahead together. due lists the
// jobs with a feasible deadline, the earliest first.
func (p *pool) setDoneBy(now time.Time, due []*job, assumedRate float64) {
	rate := p.rate.perSecond()
	if rate <= 0 {
		rate = assumedRate
	}
	previous := p.doneBy
	p.doneBy = make(map[string]time.Time, len(due))
	var next time.Time // when the job due next must start; zero: there is none
	for i := len(due) - 1; i >= 0; i-- {
		j := due[i]
		needs := needed(j.work / rate)
		if j.batch.Deadline.Add(-needs).Before(now) {
			continue // it is late by itself, and must not make others urgent
		}
		doneBy := j.batch.Deadline
		if !next.IsZero() && next.Before(doneBy) {
			doneBy = next
		}
		next = doneBy.Add(-needed(scheduler.WorkReserve * j.work / rate))
		if !doneBy.Before(j.batch.Deadline) {
			continue
		}
		if before, set := previous[j.id]; set && doneBy.Sub(before).Abs() < doneByStep {
			doneBy = before
		}
		p.doneBy[j.id] = doneBy
	}
	for _, j := range due {
		if !p.doneBy[j.id].Equal(previous[j.id]) {
			p.put(j)
		}
	}
}

// needed returns the time for s seconds of work, at most ten years.
func needed(s float64) time.Duration {
	return time.Duration(min(s, 10*365*24*3600) * float64(time.Second))
}
