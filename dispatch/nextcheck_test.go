package dispatch

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// A batch whose deadline or StartBy passes while it is looked at is looked at again at once.
func TestTimesThatPassMeanwhileAreChecked(t *testing.T) {
	now := time.Now()
	passed := now.Add(-time.Second)
	rc := &reconciler{expiry: func() time.Time { return now }}
	for name, b := range map[string]store.Batch{
		"deadline": {Deadline: passed},
		"start by": {Deadline: now.Add(time.Hour), StartBy: passed},
	} {
		if after := rc.nextCheck(&work.Run{}, &b); after <= 0 || after > time.Second {
			t.Errorf("%s: the next check is after %v, want at once", name, after)
		}
	}
	missed := store.Batch{StartBy: passed, StartMissed: true}
	if after := rc.nextCheck(&work.Run{}, &missed); after != 0 {
		t.Errorf("the next check of a missed start is after %v, want none", after)
	}
}
