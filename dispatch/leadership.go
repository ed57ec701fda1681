package dispatch

import (
	"github.com/tidefill/tidefill/dispatch/upstream"

	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// leadership holds which runners and models this process leads. Only the leader of a model claims
// its chunks, and only the leader of a runner sends it lines, so the limits of batches and runners
// hold over all processes that share a store.
//
// What belongs together is led together, see [groupsOf]. Processes with the same runners share the
// groups evenly; if there are fewer groups than processes, the others stand by. Processes whose
// runners overlap in part lead what no other has led for a while.
type leadership struct {
	// claims is locked for reading while a chunk is claimed, for writing while models are resigned.
	claims sync.RWMutex

	mu       sync.Mutex
	runners  map[string]*upstream.Runner   // that are configured, by name
	seen     map[*upstream.Runner][]string // models by runner, as last listed or assigned
	asked    map[*upstream.Runner]bool     // runners that were asked, even if in vain
	unlisted map[*upstream.Runner]bool     // runners without a list, to which assign gives models
	engines  map[*upstream.Runner]string   // as their lists identify them
	led      map[string]bool               // names of runners and models
	yielding []group                       // led until their lines have ended, for other processes
	epoch    int64                         // highest that was granted
	up       map[string]announced          // by planned runner, as announced to the planner
	planned  map[*upstream.Runner][]string // runners that stand for an upstream, as announced
	others   map[string]string             // other leaders of wanted names, as of the last try
	free     map[string]time.Time          // since when wanted names have no leader
	started  time.Time
	changed  chan struct{} // capacity 1: the models of a runner have changed
}

func newLeadership(now time.Time) *leadership {
	return &leadership{
		seen: map[*upstream.Runner][]string{}, asked: map[*upstream.Runner]bool{},
		unlisted: map[*upstream.Runner]bool{}, led: map[string]bool{}, up: map[string]announced{},
		planned: map[*upstream.Runner][]string{}, engines: map[*upstream.Runner]string{},
		free: map[string]time.Time{}, started: now, changed: make(chan struct{}, 1),
	}
}

// announced is what the planner knows of a runner.
type announced struct {
	pool   string
	models []string
}

func (a announced) equal(b announced) bool {
	return a.pool == b.pool && slices.Equal(a.models, b.models)
}

// firstAnswers limits how long a process that starts waits for its runners to list their models
// before it acquires leadership.
const firstAnswers = time.Second

// runnerName returns the name of a runner for all processes: its address, without passwords.
func runnerName(u *upstream.Runner) string {
	return runnerPrefix + u.Address()
}

func modelName(model string) string { return modelPrefix + model }

const (
	runnerPrefix = "runner/"
	modelPrefix  = "model/"
)

// configure replaces the runners that are configured, by name. It returns the events that inform
// the planner of those that are gone.
func (l *leadership) configure(runners map[string]*upstream.Runner) (gone []plan.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, earlier := range l.runners {
		now := runners[name]
		if now == earlier {
			continue
		}
		models, listed := l.seen[earlier]
		asked, unlisted, engine := l.asked[earlier], l.unlisted[earlier], l.engines[earlier]
		planned := l.planned[earlier]
		delete(l.seen, earlier)
		delete(l.asked, earlier)
		delete(l.unlisted, earlier)
		delete(l.planned, earlier)
		delete(l.engines, earlier)
		if now != nil && now.Continues(earlier) {
			if listed {
				l.seen[now] = models
			}
			if asked {
				l.asked[now] = true
			}
			if unlisted {
				l.unlisted[now] = true
			}
			if engine != "" {
				l.engines[now] = engine
			}
			if now.IsGateway() == earlier.IsGateway() {
				l.planned[now] = planned
				continue
			}
		}
		for _, name := range planned {
			delete(l.up, name)
			gone = append(gone, plan.RunnerGone{Runner: name})
		}
	}
	l.runners = runners
	l.poke()
	return gone
}

// served notes which models a runner serves. None: it did not answer, and may never have.
func (l *leadership) served(u *upstream.Runner, list upstream.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runners[u.Name] != u {
		return // it was removed while it was asked
	}
	changed := !l.asked[u]
	l.asked[u] = true
	if list.Engine != "" {
		l.engines[u] = list.Engine
	}
	switch known, ok := l.seen[u]; {
	case list.Unlisted && !l.unlisted[u]:
		l.unlisted[u], changed = true, true
	case len(list.Names) > 0 && (!ok || l.unlisted[u] || !slices.Equal(known, list.Names)):
		delete(l.unlisted, u)
		l.seen[u], changed = slices.Clone(list.Names), true
	}
	if changed {
		l.poke()
	}
}

// poke has the leadership looked at again soon.
func (l *leadership) poke() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// wanted lists the groups of the runners and their models; none until all have been asked.
func (l *leadership) wanted(now time.Time, scaled map[string]string) []group {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) < len(l.runners) && now.Sub(l.started) < firstAnswers {
		return nil
	}
	return groupsOf(l.seen, scaled)
}

// names lists the names that are led.
func (l *leadership) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.led))
}

// hold keeps this process from resigning any model until release is called. ok is false if it does
// not lead the model.
func (l *leadership) hold(model string) (release func(), ok bool) {
	l.claims.RLock()
	if !l.leadsModel(model) {
		l.claims.RUnlock()
		return nil, false
	}
	return l.claims.RUnlock, true
}

// leadsModel reports whether this process may claim chunks of the model.
func (l *leadership) leadsModel(model string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uses(modelName(model))
}

// uses reports whether lines may start by what this process leads. mu is held.
func (l *leadership) uses(name string) bool {
	return l.led[name] && !slices.ContainsFunc(l.yielding, func(g group) bool {
		return slices.Contains(g, name)
	})
}

// leadsAny reports whether this process leads one of the models.
func (l *leadership) leadsAny(models []store.ModelLines) bool {
	return slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return l.leadsModel(m.Model)
	})
}

// leadsAll reports whether this process leads all of the models.
func (l *leadership) leadsAll(models []store.ModelLines) bool {
	return !slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return !l.leadsModel(m.Model)
	})
}

// gain adds names to those that are led, and reports whether any is new.
func (l *leadership) gain(epoch int64, names []string) (isNew bool) {
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

// leadsSince returns the epoch of what is led; false: nothing is.
func (l *leadership) leadsSince() (epoch int64, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, len(l.led) > 0
}

// announce returns the events that inform the planner of changes in what is led, and of engines
// behind gateways that come and go.
func (l *leadership) announce(now time.Time) (events []plan.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u, models := range l.seen {
		var usable []string
		if l.uses(runnerName(u)) {
			for _, m := range models {
				if l.uses(modelName(m)) {
					usable = append(usable, m)
				}
			}
		}
		usable = u.Loaded(usable)
		var names []string
		var access flowcontrol.Access
		if len(usable) > 0 {
			names, access = u.Planned(now)
		}
		for _, name := range names {
			if is := (announced{u.Pool, usable}); !l.up[name].equal(is) {
				l.up[name] = is
				events = append(events, plan.RunnerUp{Runner: name, Pool: u.Pool, Models: usable,
					Unlisted: l.unlisted[u], Access: access, Gateway: u.Gateway(),
					Engine: l.engine(u, name)})
				if ev, counts := u.StopNow(now); counts && ev.Runner == name {
					events = append(events, ev)
				}
			}
		}
		events = append(events, l.replan(u, names)...)
	}
	for u := range l.planned {
		if _, has := l.seen[u]; !has { // another upstream lists all models that it was given
			events = append(events, l.replan(u, nil)...)
		}
	}
	return events
}

// replan replaces the planned runners that stand for an upstream. It returns the events that inform
// the planner of those that are gone. mu is held.
func (l *leadership) replan(u *upstream.Runner, names []string) (gone []plan.Event) {
	for _, name := range l.planned[u] {
		if !slices.Contains(names, name) {
			delete(l.up, name)
			gone = append(gone, plan.RunnerGone{Runner: name})
		}
	}
	l.planned[u] = names
	return gone
}

// engine identifies the engine of a planned runner by the upstream's address and its list of models
// and, behind a gateway, by the runner's name: the gateway may stand for one engine or for several.
func (l *leadership) engine(u *upstream.Runner, name string) string {
	engine := runnerName(u) + "#" + l.engines[u]
	if u.IsGateway() {
		engine += "#" + name
	}
	return engine
}

// lacks reports whether this process does not lead a name.
func (l *leadership) lacks(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.led[name]
}

// lose removes names from those that are led.
func (l *leadership) lose(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.led, name)
	}
	l.yielding = slices.DeleteFunc(l.yielding, func(g group) bool {
		return !slices.ContainsFunc(g, func(name string) bool { return l.led[name] })
	})
}
