package app

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/registry"
	registrykube "github.com/tidefill/tidefill/registry/kube"
)

// statusRetry is the time for which no status is written after one could not be.
const statusRetry = 10 * time.Second

// statusTarget are objects whose status is written.
type statusTarget struct {
	kind    registry.Kind
	objects *kube.Objects
}

// statusView is what statuses depend on beside documents.
type statusView struct {
	// writes reports whether this process is the one that writes them.
	writes func() bool
	// pools returns the pools in force.
	pools func() *registry.Snapshot
	// refused returns why a pool of a document is not in use; empty: it is.
	refused func(pool string) string
}

// writeStatuses writes into the status of objects whether they are in force. What is there already
// is not written again.
func (f *registryFeed) writeStatuses(ctx context.Context, now time.Time, view statusView) {
	if len(f.statuses) == 0 || now.Before(f.writeAfter) || !view.writes() {
		return
	}
	all, _ := f.now()
	pools := view.pools()
	var fault error
	for _, target := range f.statuses {
		for _, s := range registrykube.Statuses(all, target.kind, pools.HasPool, view.refused) {
			status := metav1.ConditionFalse
			if s.Status {
				status = metav1.ConditionTrue
			}
			if fault = target.objects.SetCondition(ctx, s.Object, metav1.Condition{Type: s.Type,
				Status: status, Reason: s.Reason, Message: s.Message}); fault != nil {
				f.writeAfter = now.Add(statusRetry)
				break
			}
		}
	}
	text := ""
	if fault != nil && ctx.Err() == nil {
		text = fault.Error()
	}
	f.mu.Lock()
	fresh := text != "" && f.unwritten == ""
	f.unwritten = text
	f.mu.Unlock()
	if fresh {
		f.log.WarnContext(ctx, "could not write the status of objects of the registry", "error",
			text)
	}
}
