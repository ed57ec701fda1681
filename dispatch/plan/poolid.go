package plan

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
)

// identify gives each pool an ID of its own. Pools share a name while some of their runners serve
// other models than the rest, as during an upgrade. Then the one that has runners keeps it as its
// ID, the first by key among several, and the others get their models added. So does a pool without
// a name whose models are the name of another.
func (p *Planner) identify() {
	taken := make(map[string]bool, len(p.pools))
	give := func(named, used bool) {
		for _, pool := range p.pools {
			if pool.name != "" != named || len(pool.runners) > 0 != used {
				continue
			}
			pool.id = PoolID(pool.name, pool.models)
			if taken[pool.id] {
				pool.id = fmt.Sprintf("%s (%s)", pool.id, PoolID("", pool.models))
			}
			for n := 2; taken[pool.id]; n++ {
				pool.id = fmt.Sprintf("%s (%s, %d)", pool.name, PoolID("", pool.models), n)
			}
			taken[pool.id] = true
		}
	}
	give(true, true)
	give(false, true)
	give(true, false)
	give(false, false)
}

// longestID limits the ID of a pool without a name, in bytes.
const longestID = 300

// PoolID returns what identifies a pool as long as no other has its name: that or, if it has none,
// its models. If they are too many, the ID has the first ones and a digest of all.
func PoolID(name string, models []string) string {
	if name != "" {
		return name
	}
	size := 0
	for i, m := range models {
		if size += len(m) + 1; size > longestID {
			digest := fnv.New32a()
			for _, m := range models {
				io.WriteString(digest, m+",")
			}
			return fmt.Sprintf("%s (%d of %d, %08x)", strings.Join(models[:i], ","), i, len(models),
				digest.Sum32())
		}
	}
	return strings.Join(models, ",")
}
