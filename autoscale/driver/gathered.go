package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
)

// gathered is the state of the pools and jobs at one moment.
type gathered struct {
	at     time.Time
	survey plan.Survey
	state  autoscale.State
	// fixed is the number of pools at the end of the state whose replicas nobody sets: those of
	// upstreams that name no pool.
	fixed int
	// removable holds the pools of which single replicas can be chosen to go.
	removable map[string]bool
	// runners of replicas, by pool and replica
	runners map[string]map[string][]string
	batches map[string]string // by job ID
	ending  []string          // runners that are being removed
}

// gather asks the dispatcher and whoever knows the replicas. A pool whose replicas are not known is
// left out: nothing is decided for it.
func (d *Driver) gather(ctx context.Context) (*gathered, error) {
	survey, err := d.deps.Dispatcher.Survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the work left: %w", err)
	}
	// By the wall clock alone, as are deadlines and what Kubernetes says of pods, and as it is
	// recorded: a monotonic reading would make recorded decisions differ in the ninth digit.
	if at := survey.At.Round(0); at.After(d.last) {
		d.last = at
	}
	g := &gathered{at: d.last, survey: survey, removable: map[string]bool{},
		runners: map[string]map[string][]string{}, batches: map[string]string{}}
	d.traffic.surveyed(survey)
	for _, j := range survey.Jobs {
		g.batches[j.Key.String()] = j.Key.Batch
	}
	g.state = autoscale.State{At: g.at, Jobs: survey.Jobs}
	inFlight := g.linesInFlight()
	for _, c := range d.declared.over(d.pools) {
		all, removable, err := d.replicas(c.Name, survey)
		if err != nil {
			d.metrics.unknown(c.Name)
			d.log.DebugContext(ctx, "the replicas of a pool are not known", "pool", c.Name,
				"error", err)
			continue
		}
		g.removable[c.Name], g.runners[c.Name] = removable, map[string][]string{}
		for _, r := range all {
			g.runners[c.Name][r.ID] = r.Runners
			if r.Phase == autoscale.Draining { // it is being removed by somebody else
				g.ending = append(g.ending, r.Runners...)
			}
		}
		p := autoscale.NewPool(c, d.deps.Flow(c))
		p.Replicas = d.leavingOf(c.Name).apply(g.at, withProgress(all, survey), inFlight)
		p.Harvested = harvestedOf(c.Name, survey)
		if c.Role != registry.RoleBatch {
			p.Interactive = d.traffic.interactive(g.at, c.Name, survey)
		}
		g.state.Pools = append(g.state.Pools, p)
	}
	d.addFixed(g)
	return g, nil
}

// addFixed adds the pools of upstreams that name none, with the replicas that they have. One that
// does not answer is left out while another one does.
func (d *Driver) addFixed(g *gathered) {
	for _, of := range g.survey.Pools {
		if of.Named {
			continue
		}
		var replicas, open []autoscale.Replica
		for _, r := range g.survey.Runners {
			is := autoscale.Replica{ID: r.ID, Phase: autoscale.Ready, Since: r.Since,
				Progress: r.Progress}
			switch {
			case r.Pool != of.Name:
			case r.Open:
				open = append(open, is)
			default:
				replicas = append(replicas, is)
			}
		}
		if len(replicas) == 0 {
			replicas = open
		}
		if len(replicas) == 0 {
			continue
		}
		c := registry.Pool{Name: of.Name, Models: of.Models, Min: len(replicas), Max: len(replicas)}
		p := autoscale.NewPool(c, d.deps.Flow(c))
		p.Replicas, p.Harvested = replicas, of.Harvested
		p.Interactive = d.traffic.interactive(g.at, of.Name, g.survey)
		g.state.Pools = append(g.state.Pools, p)
		g.fixed++
	}
}

// scaled counts the pools at the begin of the state whose replicas are set.
func (g *gathered) scaled() int { return len(g.state.Pools) - g.fixed }

// replicas lists the replicas of a pool, and reports whether those that go can be chosen.
func (d *Driver) replicas(
	pool string, survey plan.Survey,
) (all []Replica, removable bool, err error) {
	if d.deps.Replicas != nil && d.deps.Replicas.Knows(pool) {
		all, err = d.deps.Replicas.Replicas(pool)
		return all, true, err
	}
	for _, r := range survey.Runners {
		if r.Pool == pool {
			all = append(all, Replica{autoscale.Replica{ID: r.ID, Phase: autoscale.Ready,
				Since: r.Since}, []string{r.ID}})
		}
	}
	return all, false, nil
}

// withProgress returns replicas with the work done for the lines in flight on their runners.
func withProgress(all []Replica, survey plan.Survey) []Replica {
	done := make(map[string]float64, len(survey.Runners))
	for _, r := range survey.Runners {
		done[r.ID] = r.Progress
	}
	for i := range all {
		all[i].Progress = 0
		for _, runner := range all[i].Runners {
			all[i].Progress += done[runner]
		}
	}
	return all
}

// harvestedOf returns the work of the lines that a pool has answered.
func harvestedOf(pool string, survey plan.Survey) (work float64) {
	for _, p := range survey.Pools {
		if p.Name == pool {
			work += p.Harvested
		}
	}
	return work
}

// linesInFlight returns a function that counts the batch lines in flight on runners.
func (g *gathered) linesInFlight() func(runners []string) int {
	lines := make(map[string]int, len(g.survey.Runners))
	for _, r := range g.survey.Runners {
		lines[r.ID] = r.InFlight
	}
	return func(runners []string) (n int) {
		for _, runner := range runners {
			n += lines[runner]
		}
		return n
	}
}

// atWork counts the replicas that a decision drains from now on and that have lines in flight. They
// were not draining when it was made, so its number to report leaves them out: published for the
// time until the next decision, it would have them removed with their lines.
func (g *gathered) atWork(w autoscale.Wanted) (n int) {
	if !g.removable[w.Pool] {
		return 0
	}
	inFlight := g.linesInFlight()
	for _, id := range w.Drain {
		if inFlight(g.runners[w.Pool][id]) > 0 {
			n++
		}
	}
	return n
}

// snapshot returns what is published of a decision: all of it but pools whose replicas nobody sets.
func (g *gathered) snapshot(decision autoscale.Decision) *autoscale.Snapshot {
	s := &autoscale.Snapshot{At: g.at, Jobs: decision.Jobs}
	for i, w := range decision.Pools[:g.scaled()] {
		p := g.state.Pools[i]
		w.Reported += g.atWork(w)
		shown := autoscale.PoolSnapshot{Wanted: w, Min: p.Min, Max: p.Max}
		for _, r := range p.Replicas {
			switch r.Phase {
			case autoscale.Starting:
				shown.Starting++
			case autoscale.Ready:
				shown.Ready++
			case autoscale.Draining:
				shown.Draining++
			}
		}
		for _, in := range g.survey.Pools {
			if in.Name == p.Name {
				shown.InFlight += in.InFlight
			}
		}
		for i := range g.state.Jobs {
			j := &g.state.Jobs[i]
			if p.Serves(j) {
				shown.Lines += j.Lines
			}
		}
		s.Pools = append(s.Pools, shown)
	}
	return s
}
