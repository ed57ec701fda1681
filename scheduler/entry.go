package scheduler

import (
	"cmp"
	"fmt"
	"strings"
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

	class   Class
	changes instant // when time moves it to another class
	tenant  *tenant // of round robin; nil while urgent

	index       int // in the heap of its tenant or of the urgent jobs; -1 while parked
	changeIndex int // in the heap of changes; -1 while parked or if its class does not change
}

// compareEntries orders the jobs of a tenant and the urgent jobs. The order is total, because IDs
// are unique.
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

// newRankHeap returns a heap of entries in the order in which they are served.
func newRankHeap() heap {
	return heap{
		before: func(a, b *entry) bool { return compareEntries(a, b) < 0 },
		place:  func(e *entry) *int { return &e.index },
	}
}

// newChangeHeap returns a heap of entries by the time at which their class changes.
func newChangeHeap() heap {
	return heap{
		before: func(a, b *entry) bool {
			if a.changes != b.changes {
				return a.changes < b.changes
			}
			return a.job.ID < b.job.ID
		},
		place: func(e *entry) *int { return &e.changeIndex },
	}
}
