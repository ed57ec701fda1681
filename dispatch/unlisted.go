package dispatch

import (
	"maps"
	"slices"
)

// newDemand has the leadership looked at again if there are runners without a list, because a
// batch may name a model that they have not been given yet.
func (l *leadership) newDemand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unlisted) > 0 {
		l.poke()
	}
}

// look has the leadership looked at again, because engines of a gateway or models of a runner have
// come or gone.
func (l *leadership) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poke()
}

// assign gives the runners without a list the demanded models that no other runner lists, at most
// so many. They get none before all other runners have answered, since a model could be one of
// theirs. They keep what they were given, although no batch demands it now: another set of models
// is another pool, which has to measure its capacity anew.
func (l *leadership) assign(demanded map[string]bool, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unlisted) == 0 {
		return
	}
	listed, answered := map[string]bool{}, len(l.unlisted)
	for u, models := range l.seen {
		if l.unlisted[u] {
			continue
		}
		answered++
		for _, m := range models {
			listed[m] = true
		}
	}
	if answered < len(l.runners) {
		return
	}
	for u := range l.unlisted {
		models := unlistedModels(l.seen[u], demanded, listed, most)
		if slices.Equal(models, l.seen[u]) {
			continue
		}
		u.ForgetStreams(models)
		if l.seen[u] = models; len(models) == 0 {
			delete(l.seen, u)
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
