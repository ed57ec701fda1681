package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Running returns the configuration of a daemon that runs with c and has been given next: that of
// next, except for what needs a restart, which is as in c: some keys, and what belongs to a pool
// that only a restart adds.
func (c Config) Running(next Config) Config {
	given := next
	keep(reflect.ValueOf(&next).Elem(), reflect.ValueOf(c), "")
	next.Upstreams = c.withoutNewPools(next)
	next.FlowControl.Pools = c.flowWithoutNewPools(next, given)
	return next
}

// withoutNewPools returns the upstreams of a configuration that has the pools of c. Those that name
// another pool are as in c, and are left out if c has none of the name.
func (c Config) withoutNewPools(next Config) []dispatch.Upstream {
	var kept []dispatch.Upstream
	for _, u := range next.Upstreams {
		if u.Pool == "" || next.namesPool(u.Pool) {
			kept = append(kept, u)
			continue
		}
		for _, old := range c.Upstreams {
			if shownName(old) == shownName(u) {
				kept = append(kept, old)
			}
		}
	}
	return kept
}

// flowWithoutNewPools is the same for the entries of flowcontrol.pools, of which one may also name
// a model of a pool. given is next with the pools of its own.
func (c Config) flowWithoutNewPools(next, given Config) map[string]flowcontrol.Config {
	kept := maps.Clone(next.FlowControl.Pools)
	for name := range kept {
		served, _ := next.servedModels()
		if !given.hasPool(name) || next.hasPool(name) || slices.Contains(served, name) {
			continue
		}
		delete(kept, name)
		if old, had := c.FlowControl.Pools[name]; had {
			kept[name] = old
		}
	}
	return kept
}

func (c Config) namesPool(name string) bool {
	return slices.ContainsFunc(c.Pools, func(p PoolConfig) bool { return p.Name == name })
}

// shownName returns the name of an upstream in changes.
func shownName(u dispatch.Upstream) string {
	return cmp.Or(u.Name, withoutCredentials(u.URL))
}

// keep gives the keys of a section that need a restart the values that they have in running.
func keep(section, running reflect.Value, path string) {
	for f := range fields(section) {
		key := join(path, f.key)
		applied, mixed := atRunTime(key)
		switch {
		case key == "pools":
			f.change(section, func(v reflect.Value) { keepPools(v, f.of(running)) })
		case mixed:
			f.change(section, func(v reflect.Value) { keep(v, f.of(running), key) })
		case !applied:
			f.change(section, func(v reflect.Value) { v.Set(f.of(running)) })
		}
	}
}

// keepPools gives the running pools what applies at run time of the next ones of the same names. No
// pool is added or removed.
func keepPools(next, running reflect.Value) {
	pools := slices.Clone(running.Interface().([]PoolConfig))
	for i, p := range pools {
		for _, changed := range next.Interface().([]PoolConfig) {
			if changed.Name == p.Name {
				keep(reflect.ValueOf(&changed).Elem(), reflect.ValueOf(p), "pools[]")
				pools[i] = changed
			}
		}
	}
	next.Set(reflect.ValueOf(pools))
}
