package experiment

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// job is one run, or one search.
type job func(context.Context) error

// parallel runs jobs on all processors and ends at the first error.
func parallel(ctx context.Context, jobs []job) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		if within.Err() != nil {
			break
		}
		group.Go(func() error { return j(within) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
