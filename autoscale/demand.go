package autoscale

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// task is a job with a deadline.
type task struct {
	job      *plan.Demand
	deadline float64 // seconds from now
	late     bool    // misses its deadline, as far as is certain
	lost     bool    // misses it even under the uncertainty; nothing is bought for it
}

// tasks returns the jobs that have a deadline and are not paused, the earliest deadline first.
func tasks(now time.Time, jobs []plan.Demand) []task {
	list := make([]task, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; !j.Paused && !j.Deadline.IsZero() && j.Work > 0 {
			list = append(list, task{job: j, deadline: j.Deadline.Sub(now).Seconds()})
		}
	}
	slices.SortFunc(list, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), a.job.Key.Compare(b.job.Key))
	})
	return list
}

// findLate calls late for the tasks that a supply, multiplied by a factor, cannot finish guard
// seconds before their deadlines. Where a deadline would be missed, the largest task due until then
// is dropped, which makes the number of late tasks least (Moore, 1968).
func findLate(list []task, s supply, guard, factor float64, late func(i int)) {
	due := bySize{list: list}
	sum := 0.0
	for i := range list {
		heap.Push(&due, i)
		sum += list[i].job.Work
		for most := factor * s.until(list[i].deadline-guard); sum > most && due.Len() > 0; {
			largest := heap.Pop(&due).(int)
			late(largest)
			sum -= list[largest].job.Work
		}
	}
}

// bySize is a heap of tasks, the largest first, of equal ones the one due first.
type bySize struct {
	list    []task
	indices []int
}

func (h *bySize) Len() int      { return len(h.indices) }
func (h *bySize) Swap(i, k int) { h.indices[i], h.indices[k] = h.indices[k], h.indices[i] }
func (h *bySize) Push(x any)    { h.indices = append(h.indices, x.(int)) }

func (h *bySize) Less(i, k int) bool {
	a, b := h.indices[i], h.indices[k]
	return h.list[a].job.Work > h.list[b].job.Work || h.list[a].job.Work == h.list[b].job.Work &&
		a < b
}

func (h *bySize) Pop() any {
	last := h.indices[len(h.indices)-1]
	h.indices = h.indices[:len(h.indices)-1]
	return last
}

// demand is the work due at each instant, the earliest first.
type demand []due

// due is the work that must be done by an instant.
type due struct {
	at   float64 // seconds from now
	work float64 // of this instant and of all earlier ones
	// tight says that too little time is left for replicas that may be reclaimed. tightWork is the
	// work of all tight instants so far.
	tight     bool
	tightWork float64
}

// newDemand adds up the work of the tasks that are not lost, multiplied by a factor. Each task is
// due guard seconds before its deadline. Instants before earliest are left out, because no replica
// requested now can help them; their work counts for later instants.
func newDemand(list []task, guard func(task) float64, factor, earliest float64) demand {
	var d demand
	sum := 0.0
	for _, t := range list {
		if t.lost {
			continue
		}
		sum += t.job.Work * factor
		at := t.deadline - guard(t)
		if at < earliest {
			continue
		}
		// The sum includes the work of instants that are not earlier, which it replaces.
		for len(d) > 0 && d[len(d)-1].at >= at {
			d = d[:len(d)-1]
		}
		d = append(d, due{at: at, work: sum})
	}
	return d
}

// markTight marks the instants before which less than slack seconds remain even with all replicas.
func (d demand) markTight(most supply, slack float64) {
	sum, before := 0.0, 0.0
	for i := range d {
		if d[i].at-most.when(d[i].work) < slack {
			d[i].tight = true
			sum += d[i].work - before
		}
		d[i].tightWork = sum
		before = d[i].work
	}
}

// metBy reports whether all work is done in time by a number of replicas now and another one after
// a time: by all replicas, and the tight work without those that may be reclaimed.
func (d demand) metBy(f *future, now, later int, after float64) bool {
	return d.shortOf(f.supply(now, later, after, true), false) <= 0 &&
		(!d.anyTight() || d.shortOf(f.supply(now, later, after, false), true) <= 0)
}

func (d demand) anyTight() bool {
	return slices.ContainsFunc(d, func(x due) bool { return x.tight })
}

// shortOf returns the largest work by which a supply falls short of the demand. Negative: the work
// that it can do in addition.
func (d demand) shortOf(s supply, tight bool) float64 {
	short, _ := d.worst(s, tight)
	return short
}

// worst returns the largest work by which a supply falls short of the demand, and the instant.
func (d demand) worst(s supply, tight bool) (short, at float64) {
	cell, before, found := 0, 0.0, false
	for _, x := range d {
		work := x.work
		if tight {
			if !x.tight {
				continue
			}
			work = x.tightWork
		}
		// The same as s.until, without a search for each instant.
		for cell < len(s.cells)-1 && s.cells[cell].to < x.at {
			before = s.sum[cell]
			cell++
		}
		if missing := work - s.within(cell, before, x.at); !found || missing > short {
			short, at, found = missing, x.at, true
		}
	}
	return short, at
}
