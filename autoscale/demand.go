package autoscale

import (
	"cmp"
	"slices"
	"time"
)

// due is the work that is to be done up to an instant, in seconds from now.
type due struct {
	at   float64
	work float64 // of this and of all that is due before
	// tight: too little time is left for replicas that may be reclaimed; then sum is the work of the tight ones so far.
	tight     bool
	tightWork float64
}

// demand is what is due, the earliest first, those due together as one.
type demand []due

// task is a job with a deadline, as the demand counts it.
type task struct {
	job  *Job
	at   float64 // deadline, in seconds from now
	lost bool    // can't be met, so nothing is bought for it
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

// lose marks the tasks that can't be met by a supply. Where a deadline would be missed, the largest task due until then is given up,
// so that the fewest are (Moore, 1968).
func lose(list []task, s supply, guard float64) {
	sum := 0.0
	for i := range list {
		list[i].lost = false
		sum += list[i].job.Work
		for sum > s.until(list[i].at-guard) {
			largest := -1
			for k := range list[:i+1] {
				if !list[k].lost && (largest < 0 || list[k].job.Work > list[largest].job.Work) {
					largest = k
				}
			}
			if largest < 0 {
				break
			}
			list[largest].lost = true
			sum -= list[largest].job.Work
			if sum < 0 {
				sum = 0
			}
		}
	}
}

// demandOf adds up the tasks that are not lost. Work is due a guard before its deadline.
func demandOf(list []task, guard float64) demand {
	var d demand
	sum := 0.0
	for _, t := range list {
		if t.lost {
			continue
		}
		sum += t.job.Work
		at := t.at - guard
		if n := len(d); n > 0 && d[n-1].at == at {
			d[n-1].work = sum
			continue
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

// met says whether every due amount, times a factor, can be done in time: with all replicas, and the tight ones without those that
// may be reclaimed.
func (d demand) met(f *future, soon, later int, until, factor float64) bool {
	return d.shortOf(f.supply(soon, later, until, true), factor, false) <= 0 &&
		(!d.anyTight() || d.shortOf(f.supply(soon, later, until, false), factor, true) <= 0)
}

func (d demand) anyTight() bool {
	return slices.ContainsFunc(d, func(x due) bool { return x.tight })
}

// shortOf is by how much work a supply falls short of the demand at worst; negative: what it has to spare.
func (d demand) shortOf(s supply, factor float64, tight bool) float64 {
	short, _ := d.worst(s, factor, tight)
	return short
}

// worst is the same with the instant.
func (d demand) worst(s supply, factor float64, tight bool) (short, at float64) {
	c, before, any := 0, 0.0, false
	for _, x := range d {
		work := x.work
		if tight {
			if !x.tight {
				continue
			}
			work = x.tightWork
		}
		// s.until(x.at), walking along.
		for c < len(s.cells)-1 && s.cells[c].to < x.at {
			before = s.sum[c]
			c++
		}
		done := 0.0
		if x.at > 0 && len(s.cells) > 0 {
			rate := (s.sum[c] - before) / (s.cells[c].to - s.cells[c].from)
			done = before + float64(rate*(x.at-s.cells[c].from))
		}
		if missing := float64(work*factor) - done; !any || missing > short {
			short, at, any = missing, x.at, true
		}
	}
	return short, at
}
