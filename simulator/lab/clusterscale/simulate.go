package clusterscale

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Waits are times that a simulation saw.
type Waits struct {
	Commit      times // from an answer to its registration
	Transaction times
	Renewal     times // between the ends of two renewals of a lease
}

type times []time.Duration

// at returns the time below which a share of them is.
func (ts times) at(share float64) time.Duration {
	if len(ts) == 0 {
		return 0
	}
	slices.Sort(ts)
	i := min(len(ts)-1, int(share*float64(len(ts))))
	return ts[i].Round(100 * time.Microsecond)
}

// event is something that happens at a time. Its function may add others.
type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() (x any) {
	last := len(*e) - 1
	x = (*e)[last]
	*e = (*e)[:last]
	return x
}

// world is a database and the daemons that ask it.
type world struct {
	load   Load
	now    time.Duration
	events events
	random *rand.Rand
	free   []time.Duration // when each core of the database is free
	flush  time.Duration   // when the flush that runs or ran last ends
	queued bool            // commits wait for the next one
	waits  Waits
}

// Simulate runs the load for a time.
func Simulate(load Load, span time.Duration, seed uint64) Waits {
	w := &world{load: load, random: rand.New(rand.NewPCG(seed, 0)),
		free: make([]time.Duration, int(cores))}
	for _, c := range load.Transactions() {
		switch c.Name {
		case "registrations of segments":
			for range load.Processes {
				w.commits(c, w.upTo(load.Commit))
			}
		case "renewals of leases":
			for range load.Processes {
				w.renews(c, w.upTo(lease/4))
			}
		default:
			w.arrivals(c)
		}
	}
	for len(w.events) > 0 && w.events[0].at < span {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	return w.waits
}

func (w *world) after(wait time.Duration, do func()) {
	heap.Push(&w.events, event{w.now + wait, do})
}

func (w *world) upTo(most time.Duration) time.Duration {
	return time.Duration(w.random.Float64() * float64(most))
}

// arrivals sends transactions of a class at random times.
func (w *world) arrivals(c Class) {
	if c.PerSecond <= 0 {
		return
	}
	var next func()
	wait := func() time.Duration {
		return time.Duration(w.random.ExpFloat64() / c.PerSecond * float64(time.Second))
	}
	next = func() {
		w.transact(c)
		w.after(wait(), next)
	}
	w.after(wait(), next)
}

// transact returns when a transaction that comes now has ended: a core works on it, and a write
// waits for the next flush to begin after that.
func (w *world) transact(c Class) (end time.Duration) {
	core := 0
	for i := range w.free {
		if w.free[i] < w.free[core] {
			core = i
		}
	}
	end = max(w.now, w.free[core]) + c.Cost
	w.free[core] = end
	if c.Write {
		end = w.commit(end)
	}
	w.waits.Transaction = append(w.waits.Transaction, end-w.now)
	return end
}

// commit returns when the changes of a transaction are on the disk, that has been worked on by a
// time: with the next flush that begins, which all share that wait for it.
func (w *world) commit(worked time.Duration) time.Duration {
	if w.queued && worked >= w.flush {
		w.flush, w.queued = w.flush+flushTime, false
	}
	if worked >= w.flush { // none runs
		w.flush = worked + flushTime
		return w.flush
	}
	w.queued = true
	return w.flush + flushTime
}

// commits has a daemon write and register a segment again and again.
func (w *world) commits(c Class, first time.Duration) {
	interval := time.Duration(float64(time.Second) / w.load.segmentsEach())
	spread := math.Log(putLate.Seconds()/putMedian.Seconds()) / 2.326 // of the 99th percentile
	var round func()
	round = func() {
		began := w.now
		put := time.Duration(float64(putMedian) * math.Exp(spread*w.random.NormFloat64()))
		w.after(put, func() {
			end := w.transact(c)
			for range 10 { // answers came at any time since the last round
				w.waits.Commit = append(w.waits.Commit, end-began+w.upTo(interval))
			}
			heap.Push(&w.events, event{max(end, began+interval), round})
		})
	}
	w.after(first, round)
}

// renews has a daemon renew its lease again and again.
func (w *world) renews(c Class, first time.Duration) {
	var last time.Duration
	var renew func()
	renew = func() {
		end := w.transact(c)
		if last > 0 {
			w.waits.Renewal = append(w.waits.Renewal, end-last)
		}
		last = end
		heap.Push(&w.events, event{max(end, w.now+lease/4), renew})
	}
	w.after(first, renew)
}
