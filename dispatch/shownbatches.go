package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// shownBatches knows which batches an operator wants to see: those that have not ended, and the
// last ones that have. It is safe for concurrent use.
type shownBatches struct {
	mu     sync.Mutex
	living map[string]due
	ended  []string // the last ones that ended while this process ran, latest first
}

// due is by what batches are ordered, and which process they need.
type due struct {
	id                string
	created, deadline time.Time
	models            []string
	paused            bool // no line starts until its user resumes it
}

// maxEnded is the greatest number of ended batches that are shown.
const maxEnded = 20

func newShownBatches() *shownBatches { return &shownBatches{living: map[string]due{}} }

// see takes over the state of a batch.
func (s *shownBatches) see(b *store.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !b.State.Terminal() {
		s.living[b.ID] = due{b.ID, b.CreatedAt, b.Deadline, modelsOfBatch(b),
			b.Paused && b.State == store.InProgress}
		return
	}
	delete(s.living, b.ID)
	if !slices.Contains(s.ended, b.ID) {
		s.ended = slices.Insert(s.ended, 0, b.ID)
		s.ended = s.ended[:min(len(s.ended), maxEnded)]
	}
}

// forget removes a batch that was deleted.
func (s *shownBatches) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.living, id)
	s.ended = slices.DeleteFunc(s.ended, func(ended string) bool { return ended == id })
}

// list returns up to limit of the batches that have not ended, those with the earliest deadline
// first and those without one last. all is the number of batches that have not ended, and ended are
// the last ones that ended.
func (s *shownBatches) list(limit int) (living []string, all int, ended []string) {
	s.mu.Lock()
	order := slices.Collect(maps.Values(s.living))
	ended = slices.Clone(s.ended)
	s.mu.Unlock()
	slices.SortFunc(order, func(a, b due) int {
		return cmp.Or(laterIfZero(a.deadline, b.deadline), a.created.Compare(b.created),
			cmp.Compare(a.id, b.id))
	})
	all = len(order)
	for _, b := range order[:min(all, limit)] {
		living = append(living, b.id)
	}
	return living, all, ended
}

// waiting counts the batches that need a process that dispatches.
func (s *shownBatches) waiting(now time.Time, accepts func(models []string) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.living {
		held := b.paused && (b.deadline.IsZero() || now.Before(b.deadline))
		if !held && accepts(b.models) {
			n++
		}
	}
	return n
}

// models lists the models of the batches that have not ended.
func (s *shownBatches) models() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, b := range s.living {
		for _, m := range b.models {
			names[m] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// modelsOfBatch lists the models of a batch.
func modelsOfBatch(b *store.Batch) []string {
	models := make([]string, len(b.Models))
	for i, m := range b.Models {
		models[i] = m.Model
	}
	return models
}

// laterIfZero compares times of which zero is later than all others.
func laterIfZero(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// Batches returns the ids of up to limit batches that have not ended, those with the earliest
// deadline first. all is the number of batches that have not ended. ended are the last batches that
// ended while this process ran, latest first.
func (d *Dispatcher) Batches(limit int) (living []string, all int, ended []string) {
	return d.shown.list(limit)
}
