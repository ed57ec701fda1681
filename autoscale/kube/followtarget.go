package kube

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// followTarget keeps the number of replicas that the target should have current: it watches the
// target's metadata, and reads its /scale when the specification has changed. So it needs to know
// nothing of the kind.
func (f *follower) followTarget(ctx context.Context) {
	resource := f.target.object("").Resource
	if !f.retry(ctx, resource, func(context.Context) error {
		_, err := f.target.resolve()
		return err
	}) {
		return
	}
	gvr, _ := f.target.resolve()
	changed := make(chan struct{}, 1)
	generations := newMirror(f.source(f.cluster.clients.target(f.cfg, gvr)), generation, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		generations.run(ctx)
	}()
	defer func() { <-watching }()
	var before map[string]int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		now, listed := generations.get()
		if !listed || before != nil && maps.Equal(before, now) {
			continue
		}
		before = now
		if !f.retry(ctx, gvr.Resource+"/scale", f.target.read) {
			return
		}
	}
}

// retry calls read until it succeeds, and reports its errors. It returns false if ctx is done.
func (f *follower) retry(
	ctx context.Context, resource string, read func(context.Context) error,
) bool {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		reading, cancel := context.WithTimeout(ctx, RequestTimeout)
		err := read(reading)
		cancel()
		if ctx.Err() != nil {
			return false
		}
		f.report(resource, err)
		if err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// generation returns the number of changes of an object's specification.
func generation(o any) int64 {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return 0
	}
	return accessor.GetGeneration()
}
