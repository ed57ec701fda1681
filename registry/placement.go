package registry

import (
	"cmp"
	"slices"
)

// Claim is what a batch asks of the pools that its lines use.
type Claim struct {
	// Template is the key of its template; the zero value: it has none.
	Template Key
	Mode     Mode
	// NoSpot excludes pools whose replicas the provider reclaims.
	NoSpot bool
	// Providers lists those whose pools it may use, the first choice first. Nil: all.
	Providers []string
}

// Unplaced says why a batch may use no pool.
type Unplaced int

// The reasons.
const (
	Placed       Unplaced = iota
	NoDeployment          // no pool lists its template, and the template has none of its own
	NoOpenPool            // the profile excludes all pools
)

// Place returns the names of the pools that a batch may use, the first choice first; an empty name
// is that of runners without a pool. Nil: all. A template that pools list is served by them alone.
// NoOpenPool may come with the runners without a pool: it is the reason if they don't serve the
// model.
func (s *Snapshot) Place(c Claim) (names []string, why Unplaced) {
	var bound []Pool
	for _, p := range s.pools {
		if c.Template != (Key{}) && p.serves(c.Template) {
			bound = append(bound, p)
		}
	}
	switch {
	case len(bound) > 0:
	case c.Mode == Dedicated && c.Template != (Key{}):
		return []string{}, NoDeployment
	case !c.NoSpot && len(c.Providers) == 0:
		return nil, Placed
	default:
		bound = append(slices.Clone(s.pools), Pool{})
	}
	bound = slices.DeleteFunc(bound, func(p Pool) bool {
		return c.NoSpot && p.Reclaim > 0 ||
			c.rank(p) > len(c.Providers)
	})
	slices.SortStableFunc(bound, func(a, b Pool) int { return cmp.Compare(c.rank(a), c.rank(b)) })
	names = make([]string, len(bound))
	for i, p := range bound {
		names[i] = p.Name
	}
	open := slices.ContainsFunc(bound, func(p Pool) bool { return p.Name != "" })
	if !open && len(s.pools) > 0 {
		return names, NoOpenPool
	}
	return names, Placed
}

// rank returns the place of a pool by its provider: those without one come after those that are
// preferred, and others are too far.
func (c Claim) rank(p Pool) int {
	if i := slices.Index(c.Providers, p.Provider); i >= 0 {
		return i
	}
	if p.Provider == "" || len(c.Providers) == 0 {
		return len(c.Providers)
	}
	return len(c.Providers) + 1
}

// serves reports whether the pool lists a template.
func (p Pool) serves(template Key) bool {
	return slices.Contains(p.Templates, template.Name) ||
		slices.Contains(p.Templates, template.String())
}
