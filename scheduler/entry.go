package scheduler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/internal/heap"
)

// Class is the urgency of a job at a given time.
type Class uint8

const (
	Urgent  Class = iota // must start now to meet its deadline: goes first, tenants do not share
	Regular              // has time left
	Late                 // past its deadline, or cannot meet it: goes last
)

func (c Class) String() string {
	switch c {
	case Urgent:
		return "urgent"
	case Regular:
		return "regular"
	case Late:
		return "late"
	}
	return fmt.Sprintf("Class(%d)", c)
}

// entry is a job of the queue, with its place.
type entry struct {
	job    Job
	parked bool
	queue  *namedQueue
	rank   float64
	fault  error // why the policy could not rank the job; nil: it could

	class   Class
	changes instant      // when time moves it to another class
	tenant  *tenant      // nil while urgent
	place   flow[*entry] // among the jobs of its tenant

	index       int // in the heap of urgent jobs; -1: not in it
	changeIndex int // in the heap of changes; -1 while parked or if its class does not change
}

// compareEntries orders the urgent jobs, and the jobs of a tenant that do not share: by rank, then
// by priority. The order is total, because IDs are unique.
func compareEntries(a, b *entry) int {
	if a.rank != b.rank {
		if a.rank < b.rank {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), a.job.Created.Compare(b.job.Created),
		strings.Compare(a.job.ID, b.job.ID))
}

func rankedBefore(a, b *entry) bool { return compareEntries(a, b) < 0 }

// sharedBefore orders jobs of a tenant that have got the same work. Ranks of deadlines are hardly
// ever equal, so here the priority comes first.
func sharedBefore(a, b *entry) bool {
	if a.job.Priority != b.job.Priority {
		return a.job.Priority > b.job.Priority
	}
	return rankedBefore(a, b)
}

// newRankHeap returns a heap of entries in the order in which urgent jobs are served.
func newRankHeap() heap.Heap[*entry] {
	return heap.Heap[*entry]{Before: rankedBefore, Place: func(e *entry) *int { return &e.index }}
}

// newChangeHeap returns a heap of entries by the time at which their class changes.
func newChangeHeap() heap.Heap[*entry] {
	return heap.Heap[*entry]{
		Before: func(a, b *entry) bool {
			if a.changes != b.changes {
				return a.changes < b.changes
			}
			return a.job.ID < b.job.ID
		},
		Place: func(e *entry) *int { return &e.changeIndex },
	}
}
