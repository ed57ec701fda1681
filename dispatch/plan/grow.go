package plan

import (
	"slices"
	"strings"
)

// grow adds models to a pool of one runner, which keeps what was measured. It returns false and
// changes nothing if another pool has these models, if the pool would lose a model, or if the
// configuration has an entry for the pool before or after.
func (p *Planner) grow(grown *pool, models []string) bool {
	_, before := p.flow.Own(grown.name, grown.models)
	_, after := p.flow.Own(grown.name, models)
	if before || after || len(grown.runners) != 1 || !containsAll(models, grown.models) {
		return false
	}
	key := poolKey(grown.name, models)
	if _, taken := p.findPool(key); taken {
		return false
	}
	at := slices.Index(p.pools, grown)
	p.pools = slices.Delete(p.pools, at, at+1)
	earlier := grown.models
	grown.key, grown.models = key, models
	at, _ = p.findPool(key)
	p.pools = slices.Insert(p.pools, at, grown)
	p.order.stale = true
	for _, id := range p.jobIDs() {
		j := p.jobs[id]
		if slices.Contains(models, j.key.Model) && !slices.Contains(earlier, j.key.Model) &&
			j.batch.may(grown) {
			p.join(j, grown)
		}
	}
	p.identify()
	return true
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(x string) bool { return !slices.Contains(all, x) })
}

// poolKey returns the key of the pool of this name and these models, which are sorted.
func poolKey(name string, models []string) string {
	return name + "\x00" + strings.Join(models, "\x00")
}

// findPool returns the place of the pool with a key, and whether there is one.
func (p *Planner) findPool(key string) (at int, found bool) {
	return slices.BinarySearchFunc(p.pools, key, func(x *pool, key string) int {
		return strings.Compare(x.key, key)
	})
}
