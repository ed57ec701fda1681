package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseLock is the lock of an election. It reports errors, which client-go only logs, ends a term
// that was not renewed in time, and is released only after the term.
//
// client-go ends a term after it has tried to release the lock, which may take until another daemon
// holds it.
type leaseLock struct {
	resourcelock.Interface
	object object
	report func(error)

	mu    sync.Mutex
	limit time.Duration // of the time between renewals
	timer *time.Timer   // ends the term; nil: there is none
	late  bool          // whether it has
}

// begin begins a term, which end is called of if it is not renewed within limit.
func (l *leaseLock) begin(limit time.Duration, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
	l.timer = time.AfterFunc(limit, func() {
		l.mu.Lock()
		l.late = true
		l.mu.Unlock()
		end()
	})
}

// end ends the term: the lock may be released.
func (l *leaseLock) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.timer = nil
}

// expired reports whether the term was not renewed in time.
func (l *leaseLock) expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}

// Get implements resourcelock.Interface.
func (l *leaseLock) Get(
	ctx context.Context,
) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) { // it is created then
		l.answered(ctx, "get", err)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, r)
	l.answered(ctx, "create", err)
	return err
}

// Update implements resourcelock.Interface.
func (l *leaseLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	releases := r.HolderIdentity == ""
	l.mu.Lock()
	busy := l.timer != nil
	l.mu.Unlock()
	if releases && busy {
		return errors.New("the lease is not released before its holder has stopped")
	}
	err := l.Interface.Update(ctx, r)
	if releases && apierrors.IsConflict(err) {
		err = l.releaseAgain(ctx, r)
	}
	l.answered(ctx, "update", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.timer != nil && !l.late {
		l.timer.Reset(l.limit)
	}
	return err
}

// releaseAgain releases a lock that has changed since it was read. A renewal that was cancelled at
// the end of the term may still arrive, and the release would lose against it: other daemons would
// wait until the lock expires.
func (l *leaseLock) releaseAgain(
	ctx context.Context, r resourcelock.LeaderElectionRecord,
) error {
	record, _, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity != l.Identity() {
		return err
	}
	return l.Interface.Update(ctx, r)
}

// answered reports an answer of the API server. Another daemon may win an update.
func (l *leaseLock) answered(ctx context.Context, verb string, err error) {
	if ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		l.report(l.object.explain(verb, err))
	}
}
