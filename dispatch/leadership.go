package dispatch

import (
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// leadership holds which runners and models this dispatcher leads. Only the leader of a model
// claims its chunks, and only the leader of a runner sends it lines, so limits of batches and
// runners hold over all dispatchers that share a store.
//
// A dispatcher asks for all that its upstreams serve at once, or takes none of it: dispatchers with
// the same upstreams have one leader, the others stand by. What nobody has wanted for a while is
// taken alone, for dispatchers whose upstreams overlap in part.
type leadership struct {
	// claims is held for reading while a chunk is claimed, so that no model is given up meanwhile.
	claims sync.RWMutex

	mu      sync.Mutex
	seen    map[*upstream][]string // models by upstream, as they said last
	silent  map[*upstream]bool     // upstreams that were asked and did not answer yet
	led     map[string]bool        // names of runners and models
	up      map[string][]string    // what the planner knows: models by runner
	others  map[string]string      // who leads what we want, as of the last try; empty: nobody
	free    map[string]time.Time   // since when names are wanted by us and led by nobody
	started time.Time
	changed chan struct{} // capacity 1: an upstream has other models
}

func newLeadership(now time.Time) *leadership {
	return &leadership{
		seen: map[*upstream][]string{}, silent: map[*upstream]bool{}, led: map[string]bool{},
		up:   map[string][]string{},
		free: map[string]time.Time{}, started: now, changed: make(chan struct{}, 1),
	}
}

// firstLook bounds how long a dispatcher that starts waits for its upstreams to say what they serve
// before it asks to lead any.
const firstLook = time.Second

// runnerName names a runner for all dispatchers alike, by where it is. Passwords stay out of the
// store.
func runnerName(u *upstream) string {
	base, err := url.Parse(u.Base())
	if err != nil {
		return "runner/" + u.name
	}
	base.User = nil
	return "runner/" + base.String()
}

func modelName(model string) string { return "model/" + model }

// served notes which models an upstream serves. None: it did not answer, and may never have.
func (l *leadership) served(u *upstream, models []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.seen[u]
	switch {
	case len(models) > 0 && (!ok || !slices.Equal(known, models)):
		l.seen[u] = slices.Clone(models)
	case len(models) == 0 && !ok && !l.silent[u]:
		l.silent[u] = true
	default:
		return
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// wanted lists the names of all that the upstreams serve, sorted; none until all have been asked.
func (l *leadership) wanted(now time.Time, upstreams int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen)+len(l.silent) < upstreams && now.Sub(l.started) < firstLook {
		return nil
	}
	names := map[string]bool{}
	for u, models := range l.seen {
		names[runnerName(u)] = true
		for _, m := range models {
			names[modelName(m)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// names lists what is led.
func (l *leadership) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.led))
}

// leadsModel reports whether this dispatcher may claim chunks of the model.
func (l *leadership) leadsModel(model string) bool { return !l.lacks(modelName(model)) }

// leadsAny reports whether this process leads a model of the run's batch.
func (l *leadership) leadsAny(r *run) bool {
	r.mu.Lock()
	models := r.batch.Models
	r.mu.Unlock()
	return slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return l.leadsModel(m.Model)
	})
}

// standsBy reports whether others lead all that this dispatcher could.
func (l *leadership) standsBy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.led) == 0 && len(l.others) > 0
}

// gain notes what is led from now on, and reports whether any of it is new.
func (l *leadership) gain(names []string) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		isNew = isNew || !l.led[name]
		l.led[name] = true
		delete(l.free, name)
	}
	return isNew
}

// refused notes who leads what is wanted, and returns the names that can be taken alone by now:
// those that we lead or that nobody has led for the given time, if there is a runner among them
// that serves one of the models.
func (l *leadership) refused(
	now time.Time, wanted []string, others map[string]string, patience time.Duration,
) (alone []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others = others
	can := map[string]bool{}
	for _, name := range wanted {
		if others[name] != "" {
			delete(l.free, name)
			continue
		}
		if _, known := l.free[name]; !known {
			l.free[name] = now
		}
		can[name] = l.led[name] || now.Sub(l.free[name]) >= patience
	}
	for u, models := range l.seen {
		if can[runnerName(u)] && slices.ContainsFunc(models, func(m string) bool {
			return can[modelName(m)]
		}) {
			for _, name := range wanted {
				if can[name] {
					alone = append(alone, name)
				}
			}
			return alone
		}
	}
	return nil
}

// granted notes that nobody else leads what is wanted.
func (l *leadership) granted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others = nil
}

// announce returns the events that bring the planner up to date with what is led.
func (l *leadership) announce() (events []plan.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u, models := range l.seen {
		var usable []string
		if l.led[runnerName(u)] {
			for _, m := range models {
				if l.led[modelName(m)] {
					usable = append(usable, m)
				}
			}
		}
		known, up := l.up[u.name]
		switch {
		case len(usable) > 0 && !slices.Equal(known, usable):
			l.up[u.name] = usable
			events = append(events, plan.RunnerUp{Runner: u.name, Models: usable})
		case len(usable) == 0 && up:
			delete(l.up, u.name)
			events = append(events, plan.RunnerGone{Runner: u.name})
		}
	}
	return events
}

// lacks reports whether a name is not led by this dispatcher.
func (l *leadership) lacks(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.led[name]
}

// lose notes that names are led no more.
func (l *leadership) lose(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.led, name)
	}
}
