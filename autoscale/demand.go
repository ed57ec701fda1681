package autoscale

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// due is the work that is to be done up to an instant, in seconds from now.
type due struct {
	at   float64
	work float64 // of this and of all that is due before
	// tight: too little time is left for replicas that may be reclaimed; then sum is the work of
	// the tight ones so far.
	tight     bool
	tightWork float64
}

// demand is what is due, the earliest first, those due together as one.
type demand []due

// task is a job with a deadline, as the demand counts it.
type task struct {
	job  *Job
	at   float64 // deadline, in seconds from now
	late bool    // can't be met, as far as is expected
	lost bool    // nor if things go better, so nothing is bought for it
}

// tasks are the jobs that have a deadline and may go on, the earliest first.
func tasks(now time.Time, jobs []Job) []task {
	list := make([]task, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; !j.Paused && !j.Deadline.IsZero() && j.Work > 0 {
			list = append(list, task{job: j, at: j.Deadline.Sub(now).Seconds()})
		}
	}
	slices.SortFunc(list, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job.ID, b.job.ID))
	})
	return list
}

// lose chooses the tasks that can't be met by a supply that is a factor of what is expected. Where
// a deadline would be missed, the largest task due until then is given up, so that the fewest are
// (Moore, 1968).
func lose(list []task, s supply, guard, factor float64, lost func(i int)) {
	due := bySize{list: list}
	sum := 0.0
	for i := range list {
		heap.Push(&due, i)
		sum += list[i].job.Work
		for most := factor * s.until(list[i].at-guard); sum > most && due.Len() > 0; {
			largest := heap.Pop(&due).(int)
			lost(largest)
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

// demandOf adds up the tasks that are not lost, a factor of their work. It is due a guard before
// its deadline. What is due sooner than anything that is asked for now could be of use says
// nothing, but for the work that it puts before the rest.
func demandOf(list []task, guard func(task) float64, factor, soonest float64) demand {
	var d demand
	sum := 0.0
	for _, t := range list {
		if t.lost {
			continue
		}
		sum += portable.Rounded(t.job.Work * factor)
		at := t.at - guard(t)
		if at < soonest {
			continue
		}
		// What is due with or before an earlier deadline's work is more than that alone.
		for len(d) > 0 && d[len(d)-1].at >= at {
			d = d[:len(d)-1]
		}
		d = append(d, due{at: at, work: sum})
	}
	return d
}

// tighten marks what leaves less than slack seconds even with all replicas.
func (d demand) tighten(most supply, slack float64) {
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

// met says whether every due amount can be done in time: with all replicas, and the tight ones
// without those that may be reclaimed.
func (d demand) met(f *future, soon, later int, until float64) bool {
	return d.shortOf(f.supply(soon, later, until, true), false) <= 0 &&
		(!d.anyTight() || d.shortOf(f.supply(soon, later, until, false), true) <= 0)
}

func (d demand) anyTight() bool {
	return slices.ContainsFunc(d, func(x due) bool { return x.tight })
}

// shortOf is by how much work a supply falls short of the demand at worst; negative: what it has to
// spare.
func (d demand) shortOf(s supply, tight bool) float64 {
	short, _ := d.worst(s, tight)
	return short
}

// worst is the same with the instant.
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
		// What s.until answers, walking along.
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
