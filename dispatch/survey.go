package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// ErrNotLoaded reports that the dispatcher does not know all batches of the store yet, or is
// stopping, so that any answer about the work would be too low.
var ErrNotLoaded = errors.New("the batches of the store are not loaded")

// Survey returns the jobs, pools and runners of this process, all of one instant, the jobs in the
// order of their deadlines. The numbers in Pools go on from session to session. The error is
// ErrNotLoaded until all batches are known, and that of ctx if that ends first.
func (d *Dispatcher) Survey(ctx context.Context) (plan.Survey, error) {
	s := d.current.Load()
	if s == nil || !s.reconciler.loading.over() {
		return plan.Survey{}, ErrNotLoaded
	}
	survey, err := ask(ctx, s.loop, (*plan.Planner).Survey)
	if err != nil {
		return plan.Survey{}, fmt.Errorf("survey the work: %w", err)
	}
	plan.SortDemand(survey.Jobs)
	return survey, nil
}

// Estimate returns the demand that a batch would have if it were submitted now, for each of its
// models, by what is known of their answers. It changes nothing.
func (d *Dispatcher) Estimate(ctx context.Context, b *store.Batch) ([]plan.Demand, error) {
	s := d.current.Load()
	if s == nil {
		return nil, ErrNotLoaded
	}
	put := s.Runs.Plan(b)
	put.Models = work.PlanModels(b, work.LinesOf(b))
	demand, err := ask(ctx, s.loop, func(planner *plan.Planner, _ time.Time) []plan.Demand {
		return planner.Estimate(put)
	})
	if err != nil {
		return nil, fmt.Errorf("estimate the work of a batch: %w", err)
	}
	return demand, nil
}

// ask returns what a question to the planner returns. The loop calls it.
func ask[T any](
	ctx context.Context, l *loop, question func(*plan.Planner, time.Time) T,
) (answer T, err error) {
	answers := make(chan T, 1)
	l.Inbox.Put(work.PlannerAsked{Ask: func(now time.Time, planner *plan.Planner) {
		answers <- question(planner, now)
	}})
	select {
	case answer = <-answers:
		return answer, nil
	case <-l.done:
		return answer, ErrNotLoaded
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}
