package dispatch

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
)

// storeFailures logs the first of several failures to reach the store. That the process is fenced
// is none.
type storeFailures struct{ failing atomic.Bool }

func (f *storeFailures) log(log *slog.Logger, err error, message string) {
	failed := err != nil && !errors.Is(err, store.ErrFenced)
	if f.failing.Swap(failed) != failed && failed {
		log.Warn(message, "error", err)
	}
}
