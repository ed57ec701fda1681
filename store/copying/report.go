package copying

import (
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// report collects the summary, from several goroutines.
type report struct {
	progress func(Summary)

	mu  sync.Mutex
	sum Summary
}

// update changes the summary.
func (r *report) update(change func(*Summary)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sum.Rows == nil {
		r.sum.Rows = map[store.RowKind]Count{}
	}
	change(&r.sum)
	if r.progress != nil {
		r.progress(r.copied())
	}
}

func (r *report) current() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copied()
}

func (r *report) copied() Summary {
	s := r.sum
	s.Rows, s.Missing = maps.Clone(s.Rows), slices.Clone(s.Missing)
	return s
}
