package lead

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/store"
)

// Leadership holds which runners and models this process leads, by their names. Only the leader of
// a model claims its chunks, and only the leader of a runner sends it lines, so the limits of
// batches and runners hold over all processes that share a store.
//
// What belongs together is led together, see [groupsOf]. Processes with the same runners share the
// groups evenly; if there are fewer groups than processes, the others stand by. Processes whose
// runners overlap in part lead what no other has led for a while.
type Leadership struct {
	// claims is locked for reading while a chunk is claimed, for writing while models are resigned.
	claims sync.RWMutex

	mu       sync.Mutex
	led      map[string]bool
	yielding []group              // led until their lines have ended, for other processes
	epoch    int64                // highest that was granted
	others   map[string]string    // other leaders of wanted names, as of the last try
	free     map[string]time.Time // since when wanted names have no leader
}

// NewLeadership returns the leadership of a process that leads nothing yet.
func NewLeadership() *Leadership {
	return &Leadership{led: map[string]bool{}, free: map[string]time.Time{}}
}

// runnerName returns the name of a runner for all processes: its address, without passwords.
func runnerName(u *upstream.Runner) string { return runnerPrefix + u.Address() }

// ModelName returns the name of a model for all processes.
func ModelName(model string) string { return modelPrefix + model }

const (
	runnerPrefix = "runner/"
	modelPrefix  = "model/"
)

// Names lists the names that are led.
func (l *Leadership) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.led))
}

// Hold keeps this process from resigning any model until release is called. ok is false if it does
// not lead the model.
func (l *Leadership) Hold(model string) (release func(), ok bool) {
	l.claims.RLock()
	if !l.leadsModel(model) {
		l.claims.RUnlock()
		return nil, false
	}
	return l.claims.RUnlock, true
}

// resign calls do while no chunk is claimed.
func (l *Leadership) resign(do func() error) error {
	l.claims.Lock()
	defer l.claims.Unlock()
	return do()
}

// leadsModel reports whether this process may claim chunks of the model.
func (l *Leadership) leadsModel(model string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uses(ModelName(model))
}

// uses reports whether lines may start by what this process leads. mu is held.
func (l *Leadership) uses(name string) bool {
	return l.led[name] && !slices.ContainsFunc(l.yielding, func(g group) bool {
		return slices.Contains(g, name)
	})
}

// usable returns the names by which lines may start.
func (l *Leadership) usable() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[string]bool{}
	for name := range l.led {
		names[name] = l.uses(name)
	}
	return names
}

// LeadsAny reports whether this process leads one of the models.
func (l *Leadership) LeadsAny(models []store.ModelLines) bool {
	return slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return l.leadsModel(m.Model)
	})
}

// leadsAll reports whether this process leads all of the models.
func (l *Leadership) leadsAll(models []store.ModelLines) bool {
	return !slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return !l.leadsModel(m.Model)
	})
}

// gain adds names to those that are led, and reports whether any is new.
func (l *Leadership) gain(epoch int64, names []string) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch = max(l.epoch, epoch)
	for _, name := range names {
		isNew = isNew || !l.led[name]
		l.led[name] = true
		delete(l.free, name)
	}
	return isNew
}

// Since returns the epoch of what is led; false: nothing is.
func (l *Leadership) Since() (epoch int64, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, len(l.led) > 0
}

// lacks reports whether this process does not lead a name.
func (l *Leadership) lacks(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.led[name]
}

// lose removes names from those that are led.
func (l *Leadership) lose(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.led, name)
	}
	l.yielding = slices.DeleteFunc(l.yielding, func(g group) bool {
		return !slices.ContainsFunc(g, func(name string) bool { return l.led[name] })
	})
}

// see notes the other leaders of what the groups have. It returns the groups that nobody else leads
// and that this process does not lead completely and, of each group that others lead in part, the
// names that can be led without those: the ones that this process leads, or that had no leader for
// the given time. These are left out if no runner among them serves one of the models.
func (l *Leadership) see(
	now time.Time, groups []group, others map[string]string, patience time.Duration,
	served map[string][]string,
) (free, alone []group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others = others
	for _, g := range groups {
		taken, lacks := false, false
		for _, name := range g {
			taken = taken || others[name] != ""
			lacks = lacks || !l.led[name]
			if _, known := l.free[name]; others[name] != "" {
				delete(l.free, name)
			} else if !known {
				l.free[name] = now
			}
		}
		switch {
		case !lacks:
		case !taken:
			free = append(free, g)
		default:
			if can := l.withoutOthers(now, g, patience, served); can != nil {
				alone = append(alone, can)
			}
		}
	}
	return free, alone
}

// withoutOthers returns the names of a group that this process can lead besides the others; nil: no
// more than it leads. mu is held.
func (l *Leadership) withoutOthers(
	now time.Time, g group, patience time.Duration, served map[string][]string,
) (names group) {
	can := map[string]bool{}
	more := false
	for _, name := range g {
		if l.others[name] == "" && (l.led[name] || now.Sub(l.free[name]) >= patience) {
			can[name] = true
			names = append(names, name)
			more = more || !l.led[name]
		}
	}
	if !more {
		return nil
	}
	for runner, models := range served {
		if can[runner] && slices.ContainsFunc(models, func(name string) bool {
			return can[name]
		}) {
			return names
		}
	}
	return nil
}

// freeFor returns the time for which a group has had no leader, as far as this process has seen.
func (l *Leadership) freeFor(now time.Time, g group) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	shortest := time.Duration(math.MaxInt64)
	for _, name := range g {
		since, known := l.free[name]
		if !known {
			return 0
		}
		shortest = min(shortest, now.Sub(since))
	}
	return shortest
}

// leadsPart reports whether this process leads something of a group.
func (l *Leadership) leadsPart(g group) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(g, func(name string) bool { return l.led[name] })
}

// lacksPart reports whether this process does not lead all of a group.
func (l *Leadership) lacksPart(g group) bool { return slices.ContainsFunc(g, l.lacks) }

// yield lets no more lines of groups start, so that they can be resigned. It replaces those that
// were yielded before.
func (l *Leadership) yield(groups []group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yielding = groups
}

// yields returns the groups that are to be resigned.
func (l *Leadership) yields() []group {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.yielding)
}

// StandsBy reports whether other processes lead all that this one could.
func (l *Leadership) StandsBy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.led) == 0 && len(l.others) > 0
}

// SharesWithOthers reports whether other processes lead something that this one could.
func (l *Leadership) SharesWithOthers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.others) > 0
}

// StandsByFor reports whether other processes lead runners of models, and this one none. Without
// such runners it reports whether others lead all that this one could.
func (l *Leadership) StandsByFor(runners []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(runners) == 0 {
		return len(l.led) == 0 && len(l.others) > 0
	}
	leads, others := false, false
	for _, name := range runners {
		leads = leads || l.led[name]
		others = others || l.others[name] != ""
	}
	return !leads && others
}

// otherLeaders returns the other leaders as of the last try, by name.
func (l *Leadership) otherLeaders() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.others
}
