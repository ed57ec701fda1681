package kube_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// term is a change of the leader.
type term struct {
	node   string
	begins bool
	at     time.Time
}

// leads runs Lead of a daemon until stop is called, and sends when its terms begin and end.
func (d *daemon) leads(node string, terms chan<- term) (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.Lead(ctx, func(leading context.Context) error {
			terms <- term{node, true, time.Now()}
			<-leading.Done()
			terms <- term{node, false, time.Now()}
			return leading.Err()
		})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			d.t.Errorf("lead: %v", err)
		}
	}
	d.t.Cleanup(stop)
	return stop
}

func awaitTerm(t *testing.T, terms <-chan term, node string, begins bool) time.Time {
	t.Helper()
	select {
	case got := <-terms:
		if got.node != node || got.begins != begins {
			t.Fatalf("got %+v, want a term of %s that begins: %v", got, node, begins)
		}
		return got.at
	case <-time.After(waitLimit):
		t.Fatalf("no term of %s after %v", node, waitLimit)
		return time.Time{}
	}
}

func TestLeaseIsTakenOver(t *testing.T) {
	w := newWorld(t)
	quick := func(c *kube.Config) {
		c.LeaseDuration, c.LeaseRenew, c.LeaseRetry = 3*time.Second, 2*time.Second,
			300*time.Millisecond
	}
	pool := kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{Selector: "app=vllm"}}
	way := newProxy(t)
	first := w.daemon(options{node: "a", address: way.address(), edit: quick}, pool)
	second := w.daemon(options{node: "b", edit: quick}, pool)
	terms := make(chan term, 16)

	first.leads("a", terms)
	awaitTerm(t, terms, "a", true)
	stop := second.leads("b", terms)
	if first.value("tidefill_kubernetes_leader") != 1 ||
		second.value("tidefill_kubernetes_leader") != 0 {
		t.Error("the metric does not show that a leads")
	}

	// The daemon a gets no more answers. It stops before b begins, within the time of the Lease.
	way.stall()
	cut := time.Now()
	ended := awaitTerm(t, terms, "a", false)
	began := awaitTerm(t, terms, "b", true)
	if !ended.Before(began) || began.Sub(cut) > 5*time.Second {
		t.Errorf("a was cut off at %v, stopped after %v, and b began after %v", cut,
			ended.Sub(cut), began.Sub(cut))
	}

	// The daemon b stops. It releases the Lease, so a does not wait until it expires.
	way.setCut(true)
	way.setCut(false)
	until(t, func() string {
		if s, _ := first.State("batch"); s.Err != nil {
			return fmt.Sprintf("a is not connected: %v", s.Err)
		}
		return ""
	})
	stop()
	ended = awaitTerm(t, terms, "b", false)
	began = awaitTerm(t, terms, "a", true)
	if took := began.Sub(ended); took < 0 || took > 1500*time.Millisecond {
		t.Errorf("b stopped, and a began %v later", took)
	}
}
