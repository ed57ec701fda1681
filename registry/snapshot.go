package registry

import (
	"maps"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Snapshot is what was in force at one time. It is immutable.
type Snapshot struct {
	pools  []Pool
	byName map[string]int
	scaled map[string]string // the pool of each model that a pool lists
	flow   flowcontrol.Config
}

// New returns a snapshot of pools, which must be valid and have names of their own, and of the
// settings of flow control: those of every pool and, under Pools, of single ones. An entry there
// that names no pool names a model: it is for the implicit pool of the runners that serve the model
// and name no pool.
//
// No interactive request comes to a pool with the role batch, so that flow control lets lines fill
// its engines.
func New(pools []Pool, flow flowcontrol.Config) *Snapshot {
	s := &Snapshot{pools: slices.Clone(pools), byName: make(map[string]int, len(pools)),
		scaled: map[string]string{}, flow: flow}
	s.flow.Pools = maps.Clone(flow.Pools)
	for i, p := range s.pools {
		s.byName[p.Name] = i
		for _, model := range p.Models {
			s.scaled[model] = p.Name
		}
		if p.Role == RoleBatch {
			own := flow.For(p.Name, p.Models)
			own.Shared = false
			if s.flow.Pools == nil {
				s.flow.Pools = map[string]flowcontrol.Config{}
			}
			s.flow.Pools[p.Name] = own
		}
	}
	return s
}

// Pools lists the pools, in the order in which they were given. It must not be changed.
func (s *Snapshot) Pools() []Pool { return s.pools }

// Pool returns the pool of a name.
func (s *Snapshot) Pool(name string) (p Pool, found bool) {
	i, found := s.byName[name]
	if !found {
		return Pool{}, false
	}
	return s.pools[i], true
}

// Names lists the names of the pools. It is not nil.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.pools))
	for i, p := range s.pools {
		names[i] = p.Name
	}
	return names
}

// HasPool reports whether there is a pool of a name.
func (s *Snapshot) HasPool(name string) bool {
	_, found := s.byName[name]
	return found
}

// AllowsImplicit reports whether a pool serves models that no use case names. The name is empty for
// the upstreams that name no pool, which serve them.
func (s *Snapshot) AllowsImplicit(name string) bool {
	if name == "" {
		return true
	}
	p, found := s.Pool(name)
	return found && p.AllowImplicit
}

// Lists returns the name of a pool that lists the model, the last of several. Empty: none does.
func (s *Snapshot) Lists(model string) (pool string) { return s.scaled[model] }

// ByModel returns what Lists returns of each model that a pool lists. It must not be changed.
func (s *Snapshot) ByModel() map[string]string { return s.scaled }

// Models lists the models that pools list, sorted.
func (s *Snapshot) Models() []string { return slices.Sorted(maps.Keys(s.scaled)) }

// Expects reports whether batches of a model wait although no runner may serve it now: a pool lists
// it, or flow control has settings for it.
func (s *Snapshot) Expects(model string) bool {
	_, configured := s.flow.Pools[model]
	return configured || s.scaled[model] != ""
}

// Expected lists the names for which batches wait, sorted: the models that pools list, and those
// for which flow control has settings.
func (s *Snapshot) Expected() []string {
	names := slices.AppendSeq(s.Models(), maps.Keys(s.flow.Pools))
	slices.Sort(names)
	return slices.Compact(names)
}

// FlowControl returns the settings of flow control of all pools.
func (s *Snapshot) FlowControl() flowcontrol.Config { return s.flow }

// Flow returns the settings of flow control for the pool of a name that serves the models. The name
// is empty for the implicit pool of models.
func (s *Snapshot) Flow(name string, models []string) flowcontrol.Config {
	return s.flow.For(name, models)
}
