package plan

import (
	"container/heap"
	"slices"
	"time"
)

// timer is an action that becomes possible at a time: the next attempt of a line, the next claim of
// a job, or a trial of a runner.
type timer struct {
	at     time.Time
	seq    uint64 // orders timers of the same time
	job    *job
	line   line
	retry  bool // the line of the job is ready again; otherwise the job may claim again
	runner *runner
}

// timers is a heap of timers.
type timers struct {
	heap timerHeap
	seq  uint64
}

func (t *timers) set(x timer) {
	t.seq++
	x.seq = t.seq
	heap.Push(&t.heap, x)
}

// next returns the time of the first timer. Zero: there is none.
func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at
}

// due removes and returns a timer whose time has come, if there is one.
func (t *timers) due(now time.Time) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].at.After(now) {
		return timer{}, false
	}
	return heap.Pop(&t.heap).(timer), true
}

// dropRetries removes the timers of a job's lines of a chunk and returns these lines.
func (t *timers) dropRetries(j *job, chunk int32) (dropped []line) {
	t.heap = slices.DeleteFunc(t.heap, func(x timer) bool {
		drop := x.retry && x.job == j && x.line.chunk == chunk
		if drop {
			dropped = append(dropped, x.line)
		}
		return drop
	})
	heap.Init(&t.heap)
	return dropped
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, k int) bool {
	if !h[i].at.Equal(h[k].at) {
		return h[i].at.Before(h[k].at)
	}
	return h[i].seq < h[k].seq
}
func (h timerHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*h = old[:len(old)-1]
	return last
}
