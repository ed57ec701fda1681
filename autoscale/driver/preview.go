package driver

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// question asks what jobs would mean that do not exist.
type question struct {
	ctx    context.Context
	jobs   []plan.Demand
	answer chan<- previewed
}

// Previewed is a preview whose other jobs are named by their batches. Its pools are those whose
// replicas are set.
type Previewed struct {
	autoscale.Preview
	Tenants map[string]string // by batch
}

type previewed struct {
	Previewed
	err error
}

// Preview returns what these jobs would mean if they came now, and changes nothing.
func (d *Driver) Preview(ctx context.Context, jobs []plan.Demand) (Previewed, error) {
	answers := make(chan previewed, 1)
	select {
	case d.questions <- question{ctx, jobs, answers}:
	case <-ctx.Done():
		return Previewed{}, ctx.Err()
	}
	select {
	case a := <-answers:
		return a.Previewed, a.err
	case <-ctx.Done():
		return Previewed{}, ctx.Err()
	}
}

// preview answers a question. A process that does not decide uses what the one that does has
// learned.
func (d *Driver) preview(q question) (a previewed) {
	if a.err = d.load(q.ctx); a.err != nil {
		return a
	}
	g, err := d.gather(q.ctx)
	if err != nil {
		return previewed{err: fmt.Errorf("preview jobs: %w", err)}
	}
	a.Preview = d.fleet.Peek(g.at, g.state, q.jobs)
	scaled := g.state.Pools[:g.scaled()]
	a.Pools = slices.DeleteFunc(a.Pools, func(p autoscale.PoolPreview) bool {
		return !slices.ContainsFunc(scaled, func(q autoscale.PoolState) bool {
			return q.Name == p.Pool
		})
	})
	a.Tenants = map[string]string{}
	for i := range a.Worse {
		a.Worse[i].Job = g.batches[a.Worse[i].Job]
	}
	for _, j := range g.survey.Jobs {
		a.Tenants[j.Key.Batch] = j.Tenant
	}
	return a
}
