package kube_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// The runners of a Service follow its Deployment from zero to three replicas and back.
func TestServiceFollowsItsDeployment(t *testing.T) {
	w := newWorld(t)
	w.deployment("vllm", 0)
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Service: "vllm", Port: "80", Target: kube.Target{Name: "vllm"}}})
	d.await("batch", "desired 0")
	w.scale("vllm", 2)
	names := w.awaitPods("vllm", 2)
	slices.Sort(names)
	d.await("batch", fmt.Sprintf("%s starting , %s starting , desired 2", names[0], names[1]))
	w.ready(names[0], "10.1.0.1")
	s := d.await("batch", fmt.Sprintf("%s ready http://10.1.0.1:8000, %s starting , desired 2",
		names[0], names[1]))
	if len(s.Replicas) != 2 || s.Replicas[0].Since.Before(s.Replicas[1].Since) {
		t.Errorf("got the replicas %v: one became ready after the other was requested",
			s.Replicas)
	}
	w.ready(names[1], "10.1.0.2")
	d.await("batch", fmt.Sprintf(
		"%s ready http://10.1.0.1:8000, %s ready http://10.1.0.2:8000, desired 2", names[0],
		names[1]))
	w.scale("vllm", 0)
	d.await("batch", fmt.Sprintf(
		"%s draining http://10.1.0.1:8000, %s draining http://10.1.0.2:8000, desired 0", names[0],
		names[1]))
	w.gone(names[0])
	d.await("batch", fmt.Sprintf("%s draining http://10.1.0.2:8000, desired 0", names[1]))
	w.gone(names[1])
	s = d.await("batch", "desired 0")
	if s.Err != nil || s.Age != 0 {
		t.Errorf("got the error %v and the age %v", s.Err, s.Age)
	}
}
