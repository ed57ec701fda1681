package kube

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A renewal that was cancelled may change the Lease between the read and the release.
func TestReleaseOfAChangedLease(t *testing.T) {
	for holder, want := range map[string]string{"a": "", "b": "b"} {
		stored := &storedLock{record: resourcelock.LeaderElectionRecord{HolderIdentity: holder}}
		stored.changed = true // since a read it
		lock := leaseLock{Interface: stored, report: func(err error) {
			if err != nil {
				t.Errorf("held by %s: %v", holder, err)
			}
		}}
		err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		if err != nil || stored.record.HolderIdentity != want {
			t.Errorf("held by %s: released by a: %v, held by %q then, want %q", holder, err,
				stored.record.HolderIdentity, want)
		}
	}
}

// storedLock is a lock of the daemon a. It refuses an update of what has changed since a read.
type storedLock struct {
	resourcelock.Interface
	record  resourcelock.LeaderElectionRecord
	changed bool
}

func (l *storedLock) Identity() string { return "a" }

func (l *storedLock) Get(
	context.Context,
) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.changed = false
	record := l.record
	return &record, nil, nil
}

func (l *storedLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.changed {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "tidefill", nil)
	}
	l.record = r
	return nil
}
