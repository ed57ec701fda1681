package dispatch

import (
	"math"
	"slices"
	"time"
)

// see notes the other leaders of what the groups have. It returns the groups that nobody else leads
// and that this process does not lead completely and, of each group that others lead in part, the
// names that can be led without those: the ones that this process leads, or that had no leader for
// the given time. These are left out if no runner among them serves one of the models.
func (l *leadership) see(
	now time.Time, groups []group, others map[string]string, patience time.Duration,
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
			if can := l.withoutOthers(now, g, patience); can != nil {
				alone = append(alone, can)
			}
		}
	}
	return free, alone
}

// withoutOthers returns the names of a group that this process can lead besides the others; nil: no
// more than it leads. mu is held.
func (l *leadership) withoutOthers(
	now time.Time, g group, patience time.Duration,
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
	for u, models := range l.seen {
		if can[runnerName(u)] && slices.ContainsFunc(models, func(m string) bool {
			return can[modelName(m)]
		}) {
			return names
		}
	}
	return nil
}

// freeFor returns for how long a group has had no leader, as far as this process has seen.
func (l *leadership) freeFor(now time.Time, g group) time.Duration {
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
func (l *leadership) leadsPart(g group) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(g, func(name string) bool { return l.led[name] })
}

// lacksPart reports whether this process does not lead all of a group.
func (l *leadership) lacksPart(g group) bool { return slices.ContainsFunc(g, l.lacks) }

// yield lets no more lines of groups start, so that they can be resigned. It replaces those that
// were yielded before.
func (l *leadership) yield(groups []group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yielding = groups
}

// yields returns the groups that are to be resigned.
func (l *leadership) yields() []group {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.yielding)
}

// standsBy reports whether other processes lead all that this one could.
func (l *leadership) standsBy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.led) == 0 && len(l.others) > 0
}

// sharesWithOthers reports whether other processes lead something that this one could.
func (l *leadership) sharesWithOthers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.others) > 0
}

// standsByFor reports whether other processes lead runners of the models, and this one none.
// Without such runners it reports whether others lead all that this one could.
func (l *leadership) standsByFor(models map[string]string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	served, leads, others := false, false, false
	for u, of := range l.seen {
		if slices.ContainsFunc(of, func(m string) bool { return models[m] != "" }) {
			name := runnerName(u)
			served = true
			leads = leads || l.led[name]
			others = others || l.others[name] != ""
		}
	}
	if !served {
		return len(l.led) == 0 && len(l.others) > 0
	}
	return !leads && others
}

// otherLeaders returns the other leaders as of the last try, by name.
func (l *leadership) otherLeaders() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.others
}
