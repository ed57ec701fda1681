package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
)

// identify gives each pool an ID of its own: its name or, if it has none, the model that its first
// runner lists first, which stays when adapters come and go. Pools share one while some of their
// runners serve other models than the rest, as during an upgrade. Then the one that has runners
// keeps it as its ID, the first by key among several, and the others get their models added.
func (p *Planner) identify() {
	taken := make(map[string]bool, len(p.pools))
	give := func(named, used bool) {
		for _, pool := range p.pools {
			if pool.name != "" != named || len(pool.runners) > 0 != used {
				continue
			}
			name := cmp.Or(pool.name, pool.first)
			pool.id = name
			if taken[pool.id] {
				pool.id = fmt.Sprintf("%s (%s)", name, joined(pool.models))
			}
			for n := 2; taken[pool.id]; n++ {
				pool.id = fmt.Sprintf("%s (%s, %d)", name, joined(pool.models), n)
			}
			taken[pool.id] = true
		}
	}
	give(true, true)
	give(false, true)
	give(true, false)
	give(false, false)
}

// maxJoined limits the models in an ID, in bytes.
const maxJoined = 300

// joined returns models as a part of an ID. If they are too many, it has the first ones and a
// digest of all.
func joined(models []string) string {
	size := 0
	for i, m := range models {
		if size += len(m) + 1; size > maxJoined {
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
