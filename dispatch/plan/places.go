package plan

import (
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// places estimates when the jobs of a pool start, for display. It is made when somebody asks, and
// kept for a while, since it looks at all jobs.
type places struct {
	until   time.Time         // made again after that
	busiest map[string]string // by tenant, the batch with most lines in flight
	// ahead is the work that starts before a job's first line, by job ID, in milliseconds.
	ahead map[string]float64
}

// placesPerSecond limits the jobs that are looked at per second for places.
const placesPerSecond = 1000

// place returns the batch of the job's tenant that has most lines in flight in its pool, and when
// the job's first line is expected to start. Empty and 0: there is none; unknown.
func (p *Planner) place(now time.Time, j *job) (behind string, in time.Duration) {
	pool := j.mainPool()
	if !now.Before(pool.places.until) {
		pool.places = p.placesOf(now, pool)
		pool.places.until = now.Add(max(time.Second,
			time.Duration(len(p.jobs))*time.Second/placesPerSecond))
	}
	behind = pool.places.busiest[j.batch.Tenant]
	ahead, known := pool.places.ahead[j.id]
	if rate := pool.rate.perSecond(); known && rate > 0 {
		in = needed(ahead / rate)
	}
	return behind, in
}

// placesOf estimates the work before each job of a pool: that of all jobs of a more urgent class
// and, of its own class, that of the jobs with a lower rank or, where jobs take turns, a line of
// each job that waits for its first one too. With several named queues, which share the pool, no
// estimate is made.
func (p *Planner) placesOf(now time.Time, pool *pool) places {
	busiest := map[string]*job{}
	positions := pool.starts.Snapshot(now)
	tenants := map[string]bool{}
	for _, at := range positions {
		j := p.jobs[at.Job.ID]
		if best := busiest[j.batch.Tenant]; j.inFlight > 0 &&
			(best == nil || j.inFlight > best.inFlight) {
			busiest[j.batch.Tenant] = j
		}
		tenants[j.batch.Tenant] = true
	}
	made := places{busiest: map[string]string{}, ahead: map[string]float64{}}
	for tenant, j := range busiest {
		made.busiest[tenant] = j.key.Batch
	}
	if len(positions) == 0 || positions[0].Queue != positions[len(positions)-1].Queue {
		return made
	}
	w := walk{before: map[string]float64{}, tenants: float64(len(tenants))}
	for _, at := range positions {
		if j := p.jobs[at.Job.ID]; j.lines > 0 && !j.batch.Paused {
			made.ahead[j.id] = w.pass(at, j)
		}
	}
	return made
}

// walk adds up the work of jobs in the order of the queue.
type walk struct {
	class   scheduler.Class
	classes float64            // work of the classes before
	all     float64            // work of the class so far
	turns   float64            // work of a line of each waiting job that shares, so far
	before  map[string]float64 // work of the class so far, by tenant
	tenants float64            // tenants that share
}

// pass returns the work before a job, and adds its own.
func (w *walk) pass(at scheduler.Position, j *job) (ahead float64) {
	if at.Class != w.class {
		w.classes, w.all, w.turns = w.classes+w.all, 0, 0
		w.class = at.Class
		clear(w.before)
	}
	switch {
	case at.Shared:
		ahead = w.turns
	case at.Class == scheduler.Urgent:
		ahead = w.all
	default: // ranked within their tenant, and the tenants share
		ahead = w.before[j.batch.Tenant] * w.tenants
	}
	if j.inFlight == 0 && j.lines > 0 {
		w.turns += j.work / float64(j.lines)
	}
	w.all += j.work
	w.before[j.batch.Tenant] += j.work
	return w.classes + ahead
}
