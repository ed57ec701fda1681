package registry

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// UseCase is a use case in force. It must not be changed.
type UseCase struct {
	// Model is the name that users send.
	Model string
	// Set is the key of the set that has the use case.
	Set string
	// Objective is the time per output token that is wanted of 95 % of the requests. 0: none.
	Objective time.Duration
	// Class is the class of priority.
	Class string
	// Weight is the share among the use cases of the class, above 0.
	Weight float64
	// Targets are the models that answer: one or more, with a weight above 0 of at least one.
	Targets []Target
	// Pools lists the pools that serve the use case. Empty: every pool, and the upstreams that name
	// none.
	Pools []string
	// Tenants lists those that may send the name. Empty: all.
	Tenants []string
	// Sticky is none, prefix or the name of a header.
	Sticky string
}

// Target is a model as engines name it. The name is not looked up among the use cases again.
type Target struct {
	Model  string
	Weight int
}

// Match says which use cases are in force for a model name that a tenant sent. The zero value has
// none.
type Match struct {
	// UseCases are those of the tenant, whose pools exist. No two have a pool in common.
	UseCases []*UseCase
	// WaitsFor lists the pools that use cases of the tenant name, and that don't exist.
	WaitsFor []string
	// taken are the use cases of other tenants.
	taken []*UseCase
}

// Waits reports whether there are use cases, none of which has a pool that exists.
func (m Match) Waits() bool { return len(m.UseCases) == 0 && len(m.WaitsFor) > 0 }

// Implicit reports whether a pool that opts in may serve the name without a use case. Within a pool
// the name of a use case is never served to tenants that may not use it. The pool is empty for the
// upstreams that name none.
func (m Match) Implicit(pool string) bool {
	if len(m.UseCases) > 0 || len(m.WaitsFor) > 0 {
		return false
	}
	return !slices.ContainsFunc(m.taken, func(u *UseCase) bool { return u.in(pool) })
}

// in reports whether the pool serves the use case.
func (u *UseCase) in(pool string) bool {
	return len(u.Pools) == 0 || slices.Contains(u.Pools, pool)
}

// In returns the use case that a pool serves; nil: none.
func (m Match) In(pool string) *UseCase {
	for _, u := range m.UseCases {
		if u.in(pool) {
			return u
		}
	}
	return nil
}

// UseCase returns what is in force for a model name that a tenant sent. exists reports whether
// there is a pool of a name. A use case of which some pools exist is in force with these.
func (c *Catalogs) UseCase(tenant, model string, exists func(pool string) bool) (m Match) {
	for _, u := range c.byModel[model] {
		if len(u.Tenants) > 0 && !slices.Contains(u.Tenants, tenant) {
			m.taken = append(m.taken, u)
			continue
		}
		missing := missingOf(u.Pools, exists)
		m.WaitsFor = append(m.WaitsFor, missing...)
		switch {
		case len(missing) == 0:
			m.UseCases = append(m.UseCases, u)
		case len(missing) < len(u.Pools):
			known := *u
			known.Pools = slices.DeleteFunc(slices.Clone(u.Pools), func(pool string) bool {
				return slices.Contains(missing, pool)
			})
			m.UseCases = append(m.UseCases, &known)
		}
	}
	return m
}

func missingOf(pools []string, exists func(pool string) bool) (missing []string) {
	for _, pool := range pools {
		if !exists(pool) {
			missing = append(missing, pool)
		}
	}
	return missing
}

// UseCases lists the sets of use cases by key.
func (c *Catalogs) UseCases() []Entry[UseCaseSet] { return c.useCases.entries }

// UseCaseModels lists the model names that the tenant may send and of which a pool exists, sorted.
func (c *Catalogs) UseCaseModels(tenant string, exists func(pool string) bool) (names []string) {
	for model := range c.byModel {
		if len(c.UseCase(tenant, model, exists).UseCases) > 0 {
			names = append(names, model)
		}
	}
	slices.Sort(names)
	return names
}

// Condition is a state of an item, as the status of a Kubernetes object has it.
type Condition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Accepted is the type of the condition that an item is in force, and what it needs is there.
const Accepted = "Accepted"

// The reasons of the condition Accepted.
const (
	ReasonAccepted     = "Accepted"
	ReasonPoolNotFound = "PoolNotFound"
	ReasonRefused      = "Refused"
)

// Accepted returns the condition of a set in force. exists reports whether there is a pool of a
// name.
func (s UseCaseSet) Accepted(exists func(pool string) bool) Condition {
	missing := missingOf(s.PoolNames(), exists)
	if len(missing) == 0 {
		return Condition{Accepted, true, ReasonAccepted, "The use cases are in force."}
	}
	return Condition{Accepted, false, ReasonPoolNotFound, fmt.Sprintf("Use cases wait for "+
		"pools that do not exist: %s. Add them, or correct spec.poolRef.",
		strings.Join(missing, ", "))}
}

// settleUseCases drops the sets that contradict others: a model name twice in a pool, or targets
// that lead back to their use case. Those of the first document count, and within one those above.
// A set that is dropped stays as it was last, if that contradicts none.
func (c *Catalogs) settleUseCases(now time.Time, before *catalog[UseCaseSet], order []string) {
	place := make(map[string]int, len(order))
	for i, document := range order {
		place[document] = i
	}
	all := c.useCases.entries
	slices.SortStableFunc(all, func(a, b Entry[UseCaseSet]) int {
		return cmp.Or(place[a.Document]-place[b.Document], a.Row-b.Row)
	})
	view := useCaseView{byModel: map[string][]*placed{}}
	c.useCases.entries = nil
	for _, e := range all {
		path, text := view.add(e)
		if text == "" {
			c.useCases.entries = append(c.useCases.entries, e)
			continue
		}
		last, found := before.find(e.Item.Key())
		kept := found && last.Document == e.Document && !reflect.DeepEqual(last.Item, e.Item)
		if kept {
			last.Kept, last.Row = true, e.Row
			_, still := view.add(last)
			kept = still == ""
		}
		if kept {
			c.useCases.entries = append(c.useCases.entries, last)
		}
		c.useCases.refuse(Refused{Key: e.Item.Key(), Document: e.Document, Row: e.Row, Path: path,
			Text: text, Kept: kept, Since: since(before.refused, e.Document, text, now)})
	}
	slices.SortFunc(c.useCases.entries, func(a, b Entry[UseCaseSet]) int {
		return a.Item.Key().compare(b.Item.Key())
	})
	c.byModel = make(map[string][]*UseCase, len(view.byModel))
	for model, of := range view.byModel {
		for _, p := range of {
			c.byModel[model] = append(c.byModel[model], p.useCase)
		}
	}
}

// useCaseView has the use cases that contradict none of those before them.
type useCaseView struct{ byModel map[string][]*placed }

// placed is a use case and where it was read.
type placed struct {
	useCase *UseCase
	where   string
}

// add takes the use cases of a set, or says which of its fields contradicts others.
func (v useCaseView) add(e Entry[UseCaseSet]) (path, text string) {
	all := e.Item.UseCases()
	where := e.Document
	if e.Row > 0 {
		where += fmt.Sprintf(":%d", e.Row)
	}
	for i := range all {
		u := &all[i]
		path = fmt.Sprintf("spec.useCases[%d].modelName", i)
		for _, other := range v.byModel[u.Model] {
			if pool, both := common(u, other.useCase); both {
				v.remove(all[:i])
				return path, fmt.Sprintf("is %q, which is a use case of %s already: that of the "+
					"set %s in %s, which counts; rename one, or let the sets have other pools",
					u.Model, pool, other.useCase.Set, other.where)
			}
		}
		v.byModel[u.Model] = append(v.byModel[u.Model], &placed{u, where})
	}
	for i := range all {
		if way := v.cycle(&all[i]); way != nil {
			v.remove(all)
			return fmt.Sprintf("spec.useCases[%d].targetModels", i), fmt.Sprintf("lead back to "+
				"the use case itself: %s; a target is a model of engines, so name that",
				strings.Join(way, " -> "))
		}
	}
	return "", ""
}

// remove takes use cases that were added last out again.
func (v useCaseView) remove(all []UseCase) {
	for _, u := range all {
		of := v.byModel[u.Model]
		if v.byModel[u.Model] = of[:len(of)-1]; len(of) == 1 {
			delete(v.byModel, u.Model)
		}
	}
}

// common returns a pool that serves both use cases, in words.
func common(a, b *UseCase) (pool string, both bool) {
	if len(a.Pools) == 0 && len(b.Pools) == 0 {
		return "every pool", true
	}
	for _, pool := range slices.Concat(a.Pools, b.Pools) {
		if a.in(pool) && b.in(pool) {
			return "pool " + pool, true
		}
	}
	return "", false
}

// cycle returns the model names by which the targets of a use case lead back to it within a pool;
// nil: they don't. A target with the name of its own use case is the model itself, and no cycle.
func (v useCaseView) cycle(from *UseCase) (way []string) {
	type state struct {
		useCase *UseCase
		pool    string // in which the way goes; empty: any so far
	}
	pools := from.Pools
	if len(pools) == 0 {
		pools = []string{""}
	}
	came := map[state]state{}
	var next []state
	for _, pool := range pools {
		next = append(next, state{from, pool})
	}
	visit := func(s, by state) {
		if _, seen := came[s]; !seen {
			came[s] = by
			next = append(next, s)
		}
	}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, t := range at.useCase.Targets {
			if t.Model == at.useCase.Model {
				continue
			}
			for _, p := range v.byModel[t.Model] {
				u := p.useCase
				if at.pool != "" && !u.in(at.pool) {
					continue
				}
				if u == from {
					way = []string{from.Model}
					for s := at; s.useCase != from; s = came[s] {
						way = append(way, s.useCase.Model)
					}
					way = append(way, from.Model)
					slices.Reverse(way)
					return way
				}
				if at.pool != "" || len(u.Pools) == 0 {
					visit(state{u, at.pool}, at)
					continue
				}
				for _, pool := range u.Pools {
					visit(state{u, pool}, at)
				}
			}
		}
	}
	return nil
}
