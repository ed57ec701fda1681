package lead

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/dispatch/upstream"
)

// ScalingName is the name whose leader sets the number of replicas of pools.
const ScalingName = "scaling"

// group lists the names of runners and models that one process leads together, sorted.
type group []string

// groupsOf divides runners and their models into groups. Runners are in the same group if they have
// a model or a pool in common, directly or by way of others: one process decides what a pool
// grants, and which runner gets the next line of a model. So are all runners of models that are
// scaled, since one process decides about replicas. models holds those of each runner.
func groupsOf(models map[*upstream.Runner][]string, scaled map[string]string) (groups []group) {
	links := links{}
	for u, served := range models {
		name := runnerName(u)
		links.join(name, name)
		if u.Pool != "" {
			links.join(name, "pool/"+u.Pool)
		}
		for _, m := range served {
			links.join(name, ModelName(m))
			if scaled[m] != "" {
				links.join(name, ScalingName)
			}
		}
	}
	byRoot := map[string]group{}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if strings.HasPrefix(name, runnerPrefix) || strings.HasPrefix(name, modelPrefix) {
			root := links.root(name)
			byRoot[root] = append(byRoot[root], name)
		}
	}
	for _, g := range byRoot {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a[0], b[0]) })
	return groups
}

// links holds, for each name, another one of the same set, which is itself for one of them.
type links map[string]string

func (l links) join(a, b string) { l[l.root(a)] = l.root(b) }

func (l links) root(name string) string {
	for {
		next, known := l[name]
		if !known {
			l[name] = name
			return name
		}
		if next == name {
			return name
		}
		l[name] = l[next]
		name = next
	}
}

// runners lists the names of the runners of groups, sorted.
func runnersOf(groups []group) (names []string) {
	for _, g := range groups {
		for _, name := range g {
			if strings.HasPrefix(name, runnerPrefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
