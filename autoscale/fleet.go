package autoscale

import (
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Fleet decides for all pools of a deployment. Pools that serve a model in common are decided for
// together, by one controller; which pools these are may change from step to step.
//
// One goroutine uses it. It reads no clock; now must not decrease from call to call.
type Fleet struct {
	cfg     Config
	tracker *tracker // of all pools, so that what is known of a pool outlasts a change of groups
	groups  map[string]Controller
}

// NewFleet returns a fleet whose groups are decided for by Config.Policy.
func NewFleet(cfg Config) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Fleet{cfg: cfg, tracker: newTracker(cfg), groups: map[string]Controller{}}, nil
}

// Step returns the decision for a state, which must be complete at every call; see
// Controller.Step. It computes Pool.Lines from the jobs that the pool can serve. A job that no pool
// serves is somebody else's, and gets no forecast.
func (f *Fleet) Step(now time.Time, s State) Decision {
	d := Decision{Pools: make([]Wanted, len(s.Pools)), Wake: now.Add(f.cfg.Step)}
	groups := map[string]Controller{}
	for _, g := range groupsOf(s) {
		c := f.groups[g.key()]
		if c == nil {
			c = f.build()
		}
		groups[g.key()] = c
		part := c.Step(now, g.state)
		for i, w := range part.Pools {
			d.Pools[g.pools[i]] = w
		}
		d.Jobs = append(d.Jobs, part.Jobs...)
		if part.Wake.Before(d.Wake) {
			d.Wake = part.Wake
		}
	}
	f.groups = groups
	return d
}

func (f *Fleet) build() Controller {
	build, err := policies.Get(f.cfg.Policy)
	if err != nil {
		panic("autoscale: " + err.Error()) // NewFleet has found it
	}
	return build(f.cfg, f.tracker)
}

// group is pools that serve models in common, and the jobs of these models.
type group struct {
	pools []int // in State.Pools
	state State
}

// key identifies the group by its pools.
func (g group) key() string {
	ids := make([]string, len(g.state.Pools))
	for i := range g.state.Pools {
		ids[i] = g.state.Pools[i].Name
	}
	slices.Sort(ids)
	return strings.Join(ids, "\x00")
}

// groupsOf splits a state into its groups, in the order of their first pools.
func groupsOf(s State) []group {
	of := make([]int, len(s.Pools)) // the first pool of the group of each
	for i := range s.Pools {
		of[i] = i
		for k := range i {
			if of[k] != of[i] && s.Pools[i].shares(&s.Pools[k]) {
				join(of, i, k)
			}
		}
	}
	var groups []group
	for first := range s.Pools {
		if of[first] != first {
			continue
		}
		var g group
		for i := range s.Pools {
			if of[i] == first {
				g.pools = append(g.pools, i)
				g.state.Pools = append(g.state.Pools, s.Pools[i])
			}
		}
		g.addJobs(s.Jobs)
		groups = append(groups, g)
	}
	return groups
}

// join makes the groups of two pools one.
func join(of []int, i, k int) {
	from, to := max(of[i], of[k]), min(of[i], of[k])
	for x, group := range of {
		if group == from {
			of[x] = to
		}
	}
}

// addJobs adds the jobs that the group serves, and describes the mean line of each pool's jobs.
func (g *group) addJobs(all []plan.Demand) {
	for _, j := range all {
		if g.serves(&j) {
			g.state.Jobs = append(g.state.Jobs, j)
		}
	}
	for i := range g.state.Pools {
		p := &g.state.Pools[i]
		p.Lines = meanLine(g.state.Jobs, p)
	}
}
