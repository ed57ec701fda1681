package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// useAll uses all that a Cluster can do with the pool batch, and returns the first error.
func (d *daemon) useAll() error {
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	s, known := d.State("batch")
	switch {
	case s.Err != nil:
		return s.Err
	case !known || s.Desired == kube.Unknown || s.Age > 0:
		return errors.New("the state is not known yet")
	}
	cost := map[string]int{}
	for _, r := range s.Runners {
		cost[r.Pod] = 1
	}
	if err := d.SetDeletionCosts(ctx, "batch", cost); err != nil {
		return err
	}
	if err := d.SetDeletionCosts(ctx, "batch", nil); err != nil {
		return err
	}
	if _, err := d.Readings(ctx, "batch"); err != nil {
		return err
	}
	return d.LeaseFault()
}

// Everything works with exactly the permissions of Roles, and each of them is needed: without it an
// error names what to add, and another pool goes on.
func TestLeastPermissions(t *testing.T) {
	w := newWorld(t)
	w.serveMetrics()
	w.deployment("vllm", 1)
	w.ready(w.awaitPods("vllm", 1)[0], "10.1.0.1")
	other := newWorld(t)
	other.pod("a", map[string]string{"app": "vllm"})
	pools := []kube.Watched{
		{Name: "batch", PoolConfig: kube.PoolConfig{Service: "vllm",
			Target: kube.Target{Name: "vllm"}, Metrics: metricsConfig}},
		{Name: "well", PoolConfig: kube.PoolConfig{Selector: "app=vllm",
			Namespace: other.namespace}},
	}

	all := w.daemon(options{user: "all-" + w.namespace}, pools...)
	lead(t, all)
	until(t, func() string {
		if err := all.useAll(); err != nil {
			return err.Error()
		}
		if all.value("tidefill_kubernetes_leader") != 1 {
			return "it does not lead"
		}
		return ""
	})

	cfg := kube.DefaultConfig()
	for i, rule := range kube.Roles("tidefill", w.namespace, cfg, pools[:1])[0].Rules {
		for _, verb := range rule.Verbs {
			name := fmt.Sprintf("%s %s", verb, rule.Resources[0])
			t.Run(name, func(t *testing.T) {
				lease := fmt.Sprintf("tidefill-%d-%s", i, verb) // each is created
				d := w.daemon(options{
					user: fmt.Sprintf("less-%d-%s-%s", i, verb, w.namespace),
					edit: func(c *kube.Config) { c.Lease = lease },
					roles: func(roles []rbacv1.Role) []rbacv1.Role {
						return without(roles, w.namespace, i, verb)
					}}, pools...)
				lead(t, d)
				want := fmt.Sprintf("apiGroups [%q], resources [%q], verbs [%q]",
					rule.APIGroups[0], rule.Resources[0], verb)
				own := cfg
				own.Lease = lease
				needed := kube.Roles("tidefill", w.namespace, own, pools[:1])[0].Rules[i]
				names := needed.ResourceNames
				if len(names) > 0 {
					want += fmt.Sprintf(", resourceNames %q", names)
				}
				until(t, func() string {
					if err := d.useAll(); err == nil || !strings.Contains(err.Error(), want) {
						return fmt.Sprintf("the error is %v, want one with %s", err, want)
					}
					return ""
				})
				s := d.await("well", "a starting ")
				if s.Err != nil {
					t.Errorf("the other pool has the error %v", s.Err)
				}
			})
		}
	}
}

// lead competes for the Lease until the test ends.
func lead(t *testing.T, d *daemon) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.Lead(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// without returns the roles without a verb of a rule in a namespace.
func without(roles []rbacv1.Role, namespace string, rule int, verb string) []rbacv1.Role {
	for i := range roles {
		if roles[i].Namespace != namespace {
			continue
		}
		r := &roles[i].Rules[rule]
		r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool {
			return v == verb
		})
		if len(r.Verbs) == 0 {
			roles[i].Rules = slices.Delete(roles[i].Rules, rule, rule+1)
		}
	}
	return roles
}
