package lead

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Fleet holds the runners that are configured, the models that they serve, and what the planner
// knows of them. It is safe for concurrent use.
type Fleet struct {
	changed chan struct{} // capacity 1: what can be led may have changed
	started time.Time

	mu       sync.Mutex
	runners  map[string]*upstream.Runner   // that are configured, by name
	seen     map[*upstream.Runner][]string // models by runner, as last listed or assigned
	asked    map[*upstream.Runner]bool     // runners that were asked, even if in vain
	unlisted map[*upstream.Runner]bool     // runners without a list, to which assign gives models
	engines  map[*upstream.Runner]string   // as their lists identify them
	up       map[string]announced          // by planned runner, as announced to the planner
	planned  map[*upstream.Runner][]string // runners that stand for an upstream, as announced
}

// NewFleet returns a fleet without runners, of a session that begins now.
func NewFleet(now time.Time) *Fleet {
	return &Fleet{
		seen: map[*upstream.Runner][]string{}, asked: map[*upstream.Runner]bool{},
		unlisted: map[*upstream.Runner]bool{}, up: map[string]announced{},
		planned: map[*upstream.Runner][]string{}, engines: map[*upstream.Runner]string{},
		started: now, changed: make(chan struct{}, 1),
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

// firstAnswers limits the time that a process that starts waits for its runners to list their
// models before it acquires leadership.
const firstAnswers = time.Second

// Look has the lease look soon at what can be led: engines of a gateway or models of a runner have
// come or gone, or another process may have given up its leadership.
func (f *Fleet) Look() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// NewDemand has the lease look if there are runners without a list, because a batch may name a
// model that they have not been given yet.
func (f *Fleet) NewDemand() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unlisted) > 0 {
		f.Look()
	}
}

// Configure replaces the runners that are configured, by name. It returns the events that inform
// the planner of those that are gone.
func (f *Fleet) Configure(runners map[string]*upstream.Runner) (gone []plan.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, earlier := range f.runners {
		if now := runners[name]; now != earlier {
			gone = append(gone, f.replace(earlier, now)...)
		}
	}
	f.runners = runners
	f.Look()
	return gone
}

// replace moves what is known of a runner to the one that replaces it, as far as that continues it.
// mu is held.
func (f *Fleet) replace(earlier, now *upstream.Runner) (gone []plan.Event) {
	models, listed := f.seen[earlier]
	asked, unlisted, engine := f.asked[earlier], f.unlisted[earlier], f.engines[earlier]
	planned := f.planned[earlier]
	delete(f.seen, earlier)
	delete(f.asked, earlier)
	delete(f.unlisted, earlier)
	delete(f.planned, earlier)
	delete(f.engines, earlier)
	if now != nil && now.Continues(earlier) {
		if listed {
			f.seen[now] = models
		}
		if asked {
			f.asked[now] = true
		}
		if unlisted {
			f.unlisted[now] = true
		}
		if engine != "" {
			f.engines[now] = engine
		}
		if now.IsGateway() == earlier.IsGateway() {
			f.planned[now] = planned
			return nil
		}
	}
	for _, name := range planned {
		delete(f.up, name)
		gone = append(gone, plan.RunnerGone{Runner: name})
	}
	return gone
}

// Served notes which models a runner serves. None: it did not answer, and may never have.
func (f *Fleet) Served(u *upstream.Runner, list upstream.List) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runners[u.Name] != u {
		return // it was removed while it was asked
	}
	changed := !f.asked[u]
	f.asked[u] = true
	if list.Engine != "" {
		f.engines[u] = list.Engine
	}
	switch known, ok := f.seen[u]; {
	case list.Unlisted && !f.unlisted[u]:
		f.unlisted[u], changed = true, true
	case len(list.Names) > 0 && (!ok || f.unlisted[u] || !slices.Equal(known, list.Names)):
		delete(f.unlisted, u)
		f.seen[u], changed = slices.Clone(list.Names), true
	}
	if changed {
		f.Look()
	}
}

// assign gives the runners without a list the demanded models that no other runner lists, at most
// so many. They get none before all other runners have answered, since a model could be one of
// theirs. They keep what they were given, although no batch demands it now: another set of models
// is another pool, which has to measure its capacity anew.
func (f *Fleet) assign(demanded map[string]bool, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unlisted) == 0 {
		return
	}
	listed, answered := map[string]bool{}, len(f.unlisted)
	for u, models := range f.seen {
		if f.unlisted[u] {
			continue
		}
		answered++
		if u.Instead != "" {
			continue // it does not serve a model instead of a runner of ours
		}
		for _, m := range models {
			listed[m] = true
		}
	}
	if answered < len(f.runners) {
		return
	}
	for u := range f.unlisted {
		models := unlistedModels(f.seen[u], demanded, listed, most)
		if slices.Equal(models, f.seen[u]) {
			continue
		}
		u.ForgetStreams(models)
		if f.seen[u] = models; len(models) == 0 {
			delete(f.seen, u)
		}
	}
}

// unlistedModels returns those of the given and the demanded models that are not listed, in order.
// If they are too many, only the demanded ones count.
func unlistedModels(given []string, demanded, listed map[string]bool, most int) []string {
	models := maps.Clone(demanded)
	if models == nil {
		models = map[string]bool{}
	}
	for _, m := range given {
		models[m] = true
	}
	maps.DeleteFunc(models, func(m string, _ bool) bool { return listed[m] })
	if len(models) > most {
		maps.DeleteFunc(models, func(m string, _ bool) bool { return !demanded[m] })
	}
	names := slices.Sorted(maps.Keys(models))
	return names[:min(len(names), most)]
}

// wanted lists the groups of the runners and their models; none until all have been asked.
func (f *Fleet) wanted(now time.Time, scaled map[string]string) []group {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) < len(f.runners) && now.Sub(f.started) < firstAnswers {
		return nil
	}
	return groupsOf(f.seen, scaled)
}

// names returns the names of the models of each runner, by the runner's name.
func (f *Fleet) names() map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make(map[string][]string, len(f.seen))
	for u, models := range f.seen {
		name := runnerName(u)
		for _, m := range models {
			names[name] = append(names[name], ModelName(m))
		}
	}
	return names
}

// RunnersOf returns the names of the runners that serve one of the models.
func (f *Fleet) RunnersOf(models map[string]string) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, of := range f.seen {
		if slices.ContainsFunc(of, func(m string) bool { return models[m] != "" }) {
			names = append(names, runnerName(u))
		}
	}
	return names
}

// announce returns the events that inform the planner of changes in what is led, and of engines
// behind gateways that come and go. uses reports whether lines may start by what has a name.
func (f *Fleet) announce(now time.Time, uses func(name string) bool) (events []plan.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, models := range f.seen {
		var usable []string
		if uses(runnerName(u)) {
			for _, m := range models {
				if uses(ModelName(m)) {
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
			if is := (announced{u.Pool, usable}); !f.up[name].equal(is) {
				f.up[name] = is
				events = append(events, plan.RunnerUp{Runner: name, Pool: u.Pool, Models: usable,
					Reserved: u.Reserved, Instead: u.Instead,
					Unlisted: f.unlisted[u], Access: access,
					Gateway: u.Gateway(), Engine: f.engine(u, name)})
				if ev, counts := u.StopNow(now); counts && ev.Runner == name {
					events = append(events, ev)
				}
			}
		}
		events = append(events, f.replan(u, names)...)
	}
	for u := range f.planned {
		if _, has := f.seen[u]; !has { // another upstream lists all models that it was given
			events = append(events, f.replan(u, nil)...)
		}
	}
	return events
}

// replan replaces the planned runners that stand for an upstream. It returns the events that inform
// the planner of those that are gone. mu is held.
func (f *Fleet) replan(u *upstream.Runner, names []string) (gone []plan.Event) {
	for _, name := range f.planned[u] {
		if !slices.Contains(names, name) {
			delete(f.up, name)
			gone = append(gone, plan.RunnerGone{Runner: name})
		}
	}
	f.planned[u] = names
	return gone
}

// engine identifies the engine of a planned runner by the upstream's address and its list of models
// and, behind a gateway, by the runner's name: the gateway may stand for one engine or for several.
func (f *Fleet) engine(u *upstream.Runner, name string) string {
	engine := runnerName(u) + "#" + f.engines[u]
	if u.IsGateway() {
		engine += "#" + name
	}
	return engine
}
