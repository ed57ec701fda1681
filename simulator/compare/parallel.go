package compare

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Job is one run, or one search.
type Job func(context.Context) error

// Parallel runs jobs on all processors and ends at the first error.
func Parallel(ctx context.Context, jobs []Job) error {
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
