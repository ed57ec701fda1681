package decision

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// History holds the decisions of all pools. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	pools map[string]*timeline // by name
	now   []PoolHistory        // those that exist, without their decisions
}

// NewHistory returns an empty History. A Recorder fills it.
func NewHistory() *History { return &History{pools: map[string]*timeline{}} }

// PoolHistory is a pool as of its last sample.
type PoolHistory struct {
	Name     string
	Group    string // the name of the pool in the configuration; empty: it has none
	Models   []string
	Policy   string
	Warnings []flowcontrol.Warning
	Last     Decision
}

// maxGone is the greatest number of pools that are kept although they do not exist any more. Pools
// are named by their models, so a runner whose list of models changes all the time adds one with
// every change.
const maxGone = 8

// update replaces the pools that exist, and adds a sample to each.
func (h *History) update(now []PoolHistory, samples []*sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = now
	for _, t := range h.pools {
		t.gone = true
	}
	for i, s := range samples {
		t := h.pools[now[i].Name]
		if t == nil {
			t = newTimeline()
			h.pools[now[i].Name] = t
		}
		t.add(s)
	}
	h.forget()
}

// forget drops the pools that are gone, except for the last ones.
func (h *History) forget() {
	for {
		gone, oldest := 0, ""
		for name, t := range h.pools {
			if !t.gone {
				continue
			}
			gone++
			if o := h.pools[oldest]; o == nil || t.last().at.Before(o.last().at) {
				oldest = name
			}
		}
		if gone <= maxGone {
			return
		}
		delete(h.pools, oldest)
	}
}

// Pools returns the pools that exist.
func (h *History) Pools() []PoolHistory {
	h.mu.Lock()
	pools, last := slices.Clone(h.now), make([]*sample, len(h.now))
	for i, p := range pools {
		last[i] = h.pools[p.Name].last()
	}
	h.mu.Unlock()
	for i := range pools {
		pools[i].Last = last[i].decision(details{terms: true, inputs: true})
	}
	return pools
}

// Names returns the names of the pools whose decisions are held, sorted.
func (h *History) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.pools))
}

// Query selects decisions of a pool.
type Query struct {
	Since time.Time     // after this time; zero: from the oldest
	Until time.Time     // no later than this time; zero: to the latest
	Step  time.Duration // at least so far apart; 0: all
	Limit int           // at most so many
	Terms bool          // with all terms
	// Inputs is whether all that flow control was given about the runners is wanted.
	Inputs bool
}

// Selection is the decisions that a Query selected.
type Selection struct {
	More    bool // there are more than the limit
	samples []*sample
	with    details
}

// All returns the decisions, oldest first.
func (s Selection) All() iter.Seq[Decision] {
	return func(yield func(Decision) bool) {
		for _, one := range s.samples {
			if !yield(one.decision(s.with)) {
				return
			}
		}
	}
}

// Decisions selects decisions of a pool. If there are more than the limit, they are the oldest ones
// after Since or, without it, the latest ones. known is false if no decision of a pool of that name
// is held.
func (h *History) Decisions(pool string, q Query) (found Selection, known bool) {
	h.mu.Lock()
	var all []*sample
	if t := h.pools[pool]; t != nil {
		all, known = t.all(), true
	}
	h.mu.Unlock()
	all = q.apart(slices.DeleteFunc(all, func(s *sample) bool {
		return !q.Since.IsZero() && !s.at.After(q.Since) ||
			!q.Until.IsZero() && s.at.After(q.Until)
	}))
	found = Selection{More: len(all) > q.Limit, samples: all,
		with: details{q.Terms, q.Inputs}}
	if found.More && q.Since.IsZero() {
		found.samples = all[len(all)-q.Limit:]
	} else if found.More {
		found.samples = all[:q.Limit]
	}
	return found, known
}

// apart leaves out samples that are less than Step before the next one that stays.
func (q Query) apart(all []*sample) []*sample {
	if q.Step <= 0 || len(all) == 0 {
		return all
	}
	next := all[len(all)-1].at.Add(q.Step)
	var kept []*sample
	for _, s := range slices.Backward(all) {
		if next.Sub(s.at) >= q.Step {
			kept = append(kept, s)
			next = s.at
		}
	}
	slices.Reverse(kept)
	return kept
}

// poolReasons returns the reasons of a sample.
func poolReasons(p *plan.PoolStatus) []plan.Reason {
	reasons := make([]plan.Reason, 0, 2+len(p.Runners))
	reasons = append(reasons, p.Reason, plan.Reason(p.Granted))
	for i := range p.Runners {
		reasons = append(reasons, plan.Reason(p.Runners[i].Limited()))
	}
	return reasons
}
