package plan

import (
	"container/heap"
	"time"
)

// timer is something that becomes possible by itself: a line's next attempt, a job's next claim, a
// runner's trial.
type timer struct {
	at     time.Time
	seq    uint64 // keeps equal times in order of their setting
	job    *job
	line   line
	retry  bool // job and line: the line is ready again; otherwise the job may claim again
	runner *runner
}

// timers is a heap of what becomes possible next.
type timers struct {
	heap timerHeap
	seq  uint64
}

func (t *timers) set(x timer) {
	t.seq++
	x.seq = t.seq
	heap.Push(&t.heap, x)
}

// next is when the first timer fires; zero: never.
func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at
}

// due takes a timer that has come, if there is one.
func (t *timers) due(now time.Time) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].at.After(now) {
		return timer{}, false
	}
	return heap.Pop(&t.heap).(timer), true
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
