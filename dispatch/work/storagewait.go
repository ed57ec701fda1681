package work

import "time"

// maxStorageWait is the longest time between two tries to write results into a storage that does
// not take them. A try may write all results of a batch again.
const maxStorageWait = time.Minute

// storageWait is the wait of a run for a storage that takes its batch's results.
type storageWait struct {
	cause string        // of the last failure, a sentence
	next  time.Duration // wait after the next failure; 0: RetryEvery
}

// failed notes a failure. It returns the time until the next try, which doubles from one failure
// to the next of the same cause, and whether the cause is a new one.
func (w *storageWait) failed(cause string) (wait time.Duration, changed bool) {
	if changed = w.cause != cause; changed {
		*w = storageWait{cause: cause}
	}
	wait = max(w.next, RetryEvery)
	w.next = min(2*wait, maxStorageWait)
	return wait, changed
}
