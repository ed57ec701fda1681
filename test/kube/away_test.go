package kube_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// While nothing reaches the API server, the last state is held and ages. Afterwards what was missed
// is seen.
func TestCutConnections(t *testing.T) {
	w := newWorld(t)
	way := newProxy(t)
	w.pod("a", map[string]string{"app": "vllm"})
	w.ready("a", "10.1.0.1")
	d := w.daemon(options{address: way.address()}, kube.Watched{Name: "batch",
		PoolConfig: kube.PoolConfig{Selector: "app=vllm"}})
	d.await("batch", "a ready http://10.1.0.1:8000")
	before := d.value("tidefill_kubernetes_watch_restarts_total")
	for range 3 { // the connection is back before anything is lost
		way.setCut(true)
		way.setCut(false)
		until(t, func() string {
			if now := d.value("tidefill_kubernetes_watch_restarts_total"); now <= before {
				return fmt.Sprintf("%v watches were opened again", now)
			}
			return ""
		})
		before = d.value("tidefill_kubernetes_watch_restarts_total")
	}
	way.setCut(true)
	w.pod("b", map[string]string{"app": "vllm"})
	w.ready("b", "10.1.0.2")
	w.gone("a")
	d.awaitAge(time.Second)
	d.awaitError("batch", "pods in namespace "+w.namespace+": ")
	s, _ := d.State("batch")
	if got := describe(s); got != "a ready http://10.1.0.1:8000" {
		t.Errorf("without connection: got %q", got)
	}
	if d.value("tidefill_kubernetes_errors_total") == 0 {
		t.Error("no error was counted")
	}
	way.setCut(false)
	s = d.await("batch", "b ready http://10.1.0.2:8000")
	if s.Err != nil || s.Age != 0 {
		t.Errorf("connected again: got the age %v, error %v", s.Age, s.Err)
	}
}

// A daemon that starts while the API server is away waits for it, and reports no empty pool.
func TestStartWhileAway(t *testing.T) {
	w := newWorld(t)
	way := newProxy(t)
	way.setCut(true)
	w.pod("a", map[string]string{"app": "vllm"})
	d := w.daemon(options{address: way.address()}, kube.Watched{Name: "batch",
		PoolConfig: kube.PoolConfig{Selector: "app=vllm"}})
	d.awaitError("batch", "list pods in namespace "+w.namespace)
	if s, known := d.State("batch"); known {
		t.Errorf("got the state %v of a pool that was never read", s)
	}
	way.setCut(false)
	d.await("batch", "a starting ")
}

// Another API server on the same etcd continues where the first was.
func TestAPIServerRestarts(t *testing.T) {
	w := newWorld(t)
	w.deployment("vllm", 1)
	pool := kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{Service: "vllm",
		Target: kube.Target{Name: "vllm"}}}
	d := w.daemon(options{}, pool)
	name := w.awaitPods("vllm", 1)[0]
	w.ready(name, "10.1.0.1")
	want := name + " ready http://10.1.0.1:8000, desired 1"
	d.await("batch", want)
	if err := plane.killAPIServer(); err != nil {
		t.Fatal(err)
	}
	s := d.awaitAge(500 * time.Millisecond)
	if got := describe(s); got != want {
		t.Errorf("without API server: got %q, want %q", got, want)
	}
	if err := plane.startAPIServer(); err != nil {
		t.Fatal(err)
	}
	w.scale("vllm", 2)
	w.awaitPods("vllm", 2)
	until(t, func() string {
		if s, _ = d.State("batch"); s.Desired == 2 && len(s.Runners) == 2 && s.Age == 0 &&
			s.Err == nil {
			return ""
		}
		return fmt.Sprintf("got %s, age %v, error %v", describe(s), s.Age, s.Err)
	})
}

// awaitAge waits until the state of the pool batch is as old.
func (d *daemon) awaitAge(age time.Duration) (s kube.State) {
	d.t.Helper()
	until(d.t, func() string {
		if s, _ = d.State("batch"); s.Age >= age {
			return ""
		}
		return fmt.Sprintf("the age is %v, want %v", s.Age, age)
	})
	if got := d.value("tidefill_kubernetes_state_age_seconds"); got < age.Seconds() {
		d.t.Errorf("the metric has the age %v s, want %v", got, age)
	}
	return s
}

// value returns the sum of a metric's series.
func (d *daemon) value(name string) (sum float64) {
	d.t.Helper()
	families, err := d.registry.Gather()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}
