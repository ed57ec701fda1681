package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// Standing is a job's place for display.
type Standing struct {
	Job     Job
	Queue   string // the named queue
	Rank    float64
	Class   Class
	Parked  bool
	Changes time.Time // when time alone moves it to the next class; zero: never
}

// Snapshot lists the known jobs: named queues as listed, in them the classes, in those by rank. The
// turns that tenants will take are not foreseen. It costs O(n log n) and is for display.
func (q *Queue) Snapshot(now time.Time) []Standing {
	q.advance(now)
	var standings []Standing
	for _, lane := range q.lanes {
		var entries []*entry
		for _, e := range q.jobs {
			if e.lane == lane {
				entries = append(entries, e)
			}
		}
		slices.SortFunc(entries, compareEntries)
		first := len(standings)
		for _, e := range entries {
			// parked jobs are not moved as time passes
			class, changes := lane.classify(e.job, q.now)
			standings = append(standings, Standing{e.job, lane.name, e.rank, class, e.parked,
				timeOf(changes)})
		}
		slices.SortStableFunc(standings[first:], func(a, b Standing) int {
			return cmp.Compare(a.Class, b.Class)
		})
	}
	return standings
}
