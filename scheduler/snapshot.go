package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// Position describes the place of a job, for display.
type Position struct {
	Job     Job
	Queue   string // the named queue
	Rank    float64
	Class   Class
	Parked  bool
	Shared  bool      // the jobs of its tenant take turns; false: they go by rank
	Changes time.Time // when its class changes; zero: never
}

// Snapshot returns the positions of all jobs: by named queue in configured order, then by class,
// then by rank. It does not predict the turns of tenants. It costs O(n log n).
func (q *Queue) Snapshot(now time.Time) []Position {
	q.advance(now)
	var positions []Position
	for _, nq := range q.queues {
		var entries []*entry
		for _, e := range q.jobs {
			if e.queue == nq {
				entries = append(entries, e)
			}
		}
		slices.SortFunc(entries, compareEntries)
		first := len(positions)
		for _, e := range entries {
			// advance does not move parked jobs
			class, changes := nq.classify(e.job, q.now)
			of := nq.sharedBy(class)
			positions = append(positions, Position{e.job, nq.name, e.rank, class, e.parked,
				of != nil && !of.ranked, timeOf(changes)})
		}
		slices.SortStableFunc(positions[first:], func(a, b Position) int {
			return cmp.Compare(a.Class, b.Class)
		})
	}
	return positions
}
