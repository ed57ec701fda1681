package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// decide gathers the state, steps the fleet, has the decision carried out, and publishes it. It
// returns when the next decision is due at the latest.
func (d *Driver) decide(ctx context.Context) (wake time.Time, err error) {
	if err := d.load(ctx); err != nil {
		return wake, err
	}
	g, err := d.gather(ctx)
	if err != nil {
		return wake, err
	}
	decision := d.fleet.Step(g.at, g.state)
	d.recorded(ctx, g, decision)
	for i := range g.scaled() {
		d.apply(g, &decision.Pools[i], &g.state.Pools[i])
	}
	d.deps.Dispatcher.SetDraining(d.closedRunners(g))
	d.deps.Dispatcher.SetClosed(closedPools(decision.Pools[:g.scaled()]))
	d.deps.Dispatcher.SetForecasts(ofBatches(g.batches, decision.Jobs,
		d.fleet.OneMore(g.at, g.state)))
	d.remove(ctx, g) // before a smaller number is published
	snapshot := g.snapshot(decision)
	for i := range snapshot.Pools {
		d.metrics.decided(&snapshot.Pools[i])
	}
	d.published.set(snapshot)
	if err := d.memory.save(ctx, g.at, d.fleet, snapshot); err != nil {
		return wake, fmt.Errorf("keep what was decided for other processes: %w", err)
	}
	return decision.Wake, nil
}

// apply begins to close the replicas of a pool that shall go, or opens those that are wanted again.
func (d *Driver) apply(g *gathered, w *autoscale.Wanted, p *autoscale.PoolState) {
	leaving := d.leavingOf(w.Pool)
	existing := 0
	for _, r := range p.Replicas {
		if r.Phase != autoscale.Draining {
			existing++
		}
	}
	if missing := w.Replicas - existing; missing > 0 {
		leaving.reopen(missing)
		return
	}
	if g.removable[w.Pool] {
		w.Drain = leaving.choose(p.Replicas, w.Drain)
		leaving.drain(g.at, w.Drain)
	}
}

func (d *Driver) leavingOf(pool string) *leaving {
	l := d.leaving[pool]
	if l == nil {
		l = newLeaving(d.cfg.Down.Drain)
		if d.deps.Replicas != nil {
			l.order = d.deps.Replicas.Order(pool)
		}
		d.leaving[pool] = l
	}
	return l
}

// closedRunners lists the runners that get no new lines, because they shall go or are going.
func (d *Driver) closedRunners(g *gathered) []string {
	closed := g.ending
	for pool, l := range d.leaving {
		for _, id := range l.ids() {
			closed = append(closed, g.runners[pool][id]...)
		}
	}
	slices.Sort(closed)
	return slices.Compact(closed)
}

// remove has the replicas removed first that shall go, of these the ones with the fewest lines in
// flight: the number that is reported falls when one has none left.
func (d *Driver) remove(ctx context.Context, g *gathered) {
	inFlight := g.linesInFlight()
	for pool, l := range d.leaving {
		if !g.removable[pool] {
			continue
		}
		ids := l.ids()
		slices.SortStableFunc(ids, func(a, b string) int {
			return cmp.Compare(inFlight(g.runners[pool][b]), inFlight(g.runners[pool][a]))
		})
		if err := d.deps.Replicas.Remove(ctx, pool, ids); err != nil {
			d.log.WarnContext(ctx, "could not choose the replicas that are removed first, trying "+
				"again; others may be removed, whose lines are sent again", "pool", pool,
				"error", err)
		}
	}
}

func closedPools(decided []autoscale.Wanted) []string {
	var closed []string
	for _, w := range decided {
		if w.Closed {
			closed = append(closed, w.Pool)
		}
	}
	return closed
}
