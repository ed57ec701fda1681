package app

import (
	"context"
	"time"
)

// slowRead is the time after which a read that does not return is reported.
const slowRead = 5 * time.Second

// blockable calls read, which takes as long as a file system does not answer, and returns its
// result. It reports a read of the file that takes longer than slowRead.
//
// If ctx ends, it returns an error and leaves the read alone: nothing can interrupt that, and the
// process shall end all the same. Therefore read changes nothing that others use.
func blockable[T any](
	ctx context.Context, a *App, file string, read func() (T, error),
) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	var value T
	done := make(chan error, 1)
	go func() {
		v, err := read()
		value = v
		done <- err
	}()
	slow := time.NewTimer(slowRead)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case err := <-done:
			if a.reloads.accept(&a.reloads.blocked) {
				a.log.InfoContext(ctx, "the read that took long has returned", "file", file)
			}
			return value, err
		case <-slow.C:
			a.reloads.refuse(&a.reloads.blocked, "it blocks", time.Now())
			a.log.ErrorContext(ctx, "a read does not return; until it does, changes of files are "+
				"not noticed: check the file system", "file", file, "after", slowRead)
		}
	}
}
