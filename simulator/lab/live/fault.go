package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// Fault is something of a scenario that the pool should recover from, and when it happens.
type Fault struct {
	Name     string
	From, To time.Duration // To is From if it takes no time
}

// Faults lists the faults of a scenario by their begins: of runners, of the daemon and what it
// reads, and crowds of users.
func Faults(s scenario.Scenario) []Fault {
	var all []Fault
	add := func(from, length time.Duration, name string, args ...any) {
		all = append(all, Fault{fmt.Sprintf(name, args...), from, min(from+length, s.Horizon)})
	}
	for _, f := range s.EachFault() {
		if f.Kind == scenario.Restart {
			add(f.At, f.For, "daemon killed")
			continue
		}
		of := ""
		if len(f.Replicas) > 0 {
			of = fmt.Sprintf(" of runners %v", f.Replicas)
		}
		if f.Kind == scenario.Slow {
			of += fmt.Sprintf(", %g times", f.Factor)
		}
		add(f.At, f.For, "%s%s", f.Kind, of)
	}
	for _, f := range s.Metrics.Faults {
		add(f.From, max(0, f.To-f.From), "%s %s", cmp.Or(string(f.Source), "all metrics"), f.Kind)
	}
	for _, c := range s.Interactive.Surges {
		add(c.At, c.For, "%g times the users", c.Factor)
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	return all
}
