package work

import (
	"errors"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// RetryEvery is the time between two tries of what the store or another process prevents.
const RetryEvery = time.Second

// CodeDamaged is the code of an input that changed on the disk after its upload.
const CodeDamaged = "input_damaged"

// ErrStopped ends work on a batch whose lines may not start any more.
var ErrStopped = errors.New("stopped")

// ReasonOf returns the reason that users see for a batch that waits because of an error of the
// store.
func ReasonOf(err error) plan.Reason {
	if errors.Is(err, store.ErrNoSpace) {
		return plan.DiskFull
	}
	return plan.StoreDown
}
