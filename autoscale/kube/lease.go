package kube

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lead calls run while this daemon holds the Lease, until ctx is done or run returns by itself. The
// context of run ends when the Lease is lost; run is called again when it is regained. When ctx is
// done, the Lease is released after run has returned, so that another daemon takes over at once. If
// no pool is in Kubernetes or the configuration names no Lease, run is called without one.
func (c *Cluster) Lead(ctx context.Context, run func(context.Context) error) error {
	if c.connected() == nil || c.cfg.Lease == "" {
		c.gauges.leader.Set(1)
		defer c.gauges.leader.Set(0)
		return run(ctx)
	}
	if c.deps.Node == "" {
		return errors.New("elect a leader: the daemon has no name; set node")
	}
	for {
		lost, err := c.term(ctx, run)
		if errors.Is(err, context.Canceled) {
			err = nil // of the context that ended with the Lease
		}
		if err != nil || !lost {
			return err
		}
	}
}

// LeaseFault says why the Lease can't be read or written. Nil: it can, or none is used.
func (c *Cluster) LeaseFault() error { return errors.Join(c.reports.get()...) }

// term waits for the Lease, and calls run once while it is held. lost is true if the Lease was lost
// and ctx is not done.
func (c *Cluster) term(
	ctx context.Context, run func(context.Context) error,
) (lost bool, err error) {
	lock := c.newLock()
	held := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: c.cfg.Lease, Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: c.cfg.LeaseDuration, RenewDeadline: c.cfg.LeaseRenew,
		RetryPeriod: c.cfg.LeaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { held <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return false, fmt.Errorf("elect a leader by the Lease %s: %w", c.cfg.Lease, err)
	}
	// The election outlives ctx, so that the Lease is held until run has returned.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	elected := make(chan struct{})
	go func() {
		defer close(elected)
		elector.Run(quiet(electing))
	}()
	defer func() {
		stop()
		<-elected
	}()
	select {
	case <-ctx.Done():
		return false, nil
	case leading := <-held:
		err = c.lead(ctx, leading, lock, run)
		return leading.Err() != nil && ctx.Err() == nil || lock.expired(), err
	}
}

// lead calls run until ctx is done or the Lease is lost.
func (c *Cluster) lead(
	ctx, leading context.Context, lock *leaseLock, run func(context.Context) error,
) error {
	leading, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	lock.begin(c.cfg.LeaseRenew, cancel)
	defer lock.end()
	c.gauges.leader.Set(1)
	defer c.gauges.leader.Set(0)
	c.log.InfoContext(ctx, "acquired the Lease", "lease", c.cfg.Lease)
	err := run(leading)
	c.log.InfoContext(ctx, "stopped leading", "lease", c.cfg.Lease)
	return err
}

func (c *Cluster) newLock() *leaseLock {
	return &leaseLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.clients.namespace, Name: c.cfg.Lease},
			Client:     c.clients.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.deps.Node},
		},
		object: object{"coordination.k8s.io", "leases", c.clients.namespace, c.cfg.Lease},
		report: func(err error) { c.reports.set("leases", err) },
	}
}
