package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/lead"
)

// feedFresh is the time, besides that between two polls, after which it is not known any more which
// batches there are.
const feedFresh = 15 * time.Second

// Waiting returns the number of batches, of those whose models a function accepts, that need a
// process that dispatches: it checks them, sends their lines and ends them. Paused ones need none
// before their deadline. The error is ErrNotLoaded before all batches are known; there is one as
// well while the store can't be read.
func (d *Dispatcher) Waiting(accepts func(models []string) bool) (int, error) {
	s := d.current.Load()
	if !d.Ready() || s != nil && !s.reconciler.loading.over() {
		return 0, ErrNotLoaded
	}
	if age := d.metrics.feed.age(); age > d.pollWait()+feedFresh {
		return 0, fmt.Errorf("the batches of the store were read %v ago for the last time; see "+
			"the daemon's log", age.Truncate(time.Second))
	}
	return d.shown.waiting(d.deps.Expiry(), accepts), nil
}

// LivingModels lists the models of the batches that have not ended, as far as they are known.
func (d *Dispatcher) LivingModels() []string { return d.shown.models() }

// Leaders returns the nodes that lead models and whose lease lasts, by model.
func (d *Dispatcher) Leaders(ctx context.Context, models []string) (map[string]string, error) {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = lead.ModelName(m)
	}
	nodes, err := d.deps.Metadata.Leaders(ctx, names)
	if err != nil {
		return nil, err
	}
	leaders := map[string]string{}
	for _, m := range models {
		if node := nodes[lead.ModelName(m)]; node != "" {
			leaders[m] = node
		}
	}
	return leaders, nil
}
