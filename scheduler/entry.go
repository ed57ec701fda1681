package scheduler

import (
	"fmt"
	"strings"
)

// Class is what a job's deadlines make of it at a given time.
type Class uint8

const (
	Urgent  Class = iota // must start now to keep its promise: goes first, tenants don't share
	Regular              // has time
	Late                 // past its deadline, or unable to meet it: goes last, as best effort
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

// entry is a job that the queue knows, with where it stands.
type entry struct {
	job    Job
	parked bool
	lane   *lane
	rank   float64

	class   Class
	changes instant // when time alone moves it to another class
	tenant  *tenant // whose turns it takes part in; nil while urgent

	line  int // index in the heap of its tenant, or of the urgent jobs; -1 while parked
	alarm int // index in the heap of changes; -1 while parked or when time changes nothing
}

// compareEntries is the order inside a tenant and among urgent jobs. It is total, because IDs are
// unique.
func compareEntries(a, b *entry) int {
	if a.rank != b.rank {
		if a.rank < b.rank {
			return -1
		}
		return 1
	}
	if c := a.job.Created.Compare(b.job.Created); c != 0 {
		return c
	}
	return strings.Compare(a.job.ID, b.job.ID)
}

// newLine is a heap of entries in the order in which they are served.
func newLine() heap {
	return heap{
		before: func(a, b *entry) bool { return compareEntries(a, b) < 0 },
		place:  func(e *entry) *int { return &e.line },
	}
}

// newAlarms is a heap of entries by the time at which they change class.
func newAlarms() heap {
	return heap{
		before: func(a, b *entry) bool {
			if a.changes != b.changes {
				return a.changes < b.changes
			}
			return a.job.ID < b.job.ID
		},
		place: func(e *entry) *int { return &e.alarm },
	}
}
