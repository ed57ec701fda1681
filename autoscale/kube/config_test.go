package kube_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/autoscale/kube"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := kube.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if err := (kube.PoolConfig{}).Validate(); err != nil {
		t.Errorf("a pool without the section: %v", err)
	}
}

func TestFaultsNameTheFieldAndTheRemedy(t *testing.T) {
	edited := func(edit func(*kube.Config)) error {
		c := kube.DefaultConfig()
		edit(&c)
		return c.Validate()
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{edited(func(c *kube.Config) { c.Namespace = "A b" }), "namespace: is \"A b\", must be"},
		{edited(func(c *kube.Config) { c.Lease = "/" }), "lease: is \"/\", must be"},
	} {
		checkFault(t, test.err, test.want)
	}
}

func TestFaultsOfPools(t *testing.T) {
	for _, test := range []struct{ yaml, want string }{
		{"{service: a, selector: app=a}", "service: 2 of service, selector and inference_pool " +
			"are set; set exactly one"},
		{"{port: 80}", "service: 0 of service, selector"},
		{"{service: A_b}", "service: is \"A_b\", must be the name of a Service"},
		{"{selector: app=a=b}", "selector: "},
		{"{selector: ' '}", "selector: is \" \" and selects every pod"},
		{"{inference_pool: 'a b'}", "inference_pool: is \"a b\""},
		{"{inference_pool: a, port: 8000}", "port: is set, but an InferencePool has its own"},
		{"{inference_pool: a, inference_pool_group: b}", "inference_pool_group: is \"b\", must be"},
		{"{service: a, port: 70000}", "port: is \"70000\", must be a number from 1 to 65535"},
		{"{service: a, port: a_b}", "port: is \"a_b\", must be"},
		{"{service: a, namespace: A}", "namespace: is \"A\", must be"},
		{"{service: a, scheme: ftp}", "scheme: is \"ftp\", must be http or https"},
		{"{service: a, target: {kind: StatefulSet}}", "target.name: is empty; name the Stateful"},
		{"{service: a, target: {name: A/b}}", "target.name: is \"A/b\", must be"},
		{"{service: a, prefill: role=p}", "decode: is \"\" and prefill \"role=p\"; give both"},
		{"{service: a, prefill: =, decode: a}", "prefill: "},
		{"{service: a, metrics: {running: {pods: a, external: b}}}",
			"metrics.running.external: is set beside pods; remove one"},
		{"{service: a, metrics: {kv_used: {pod_label: b}}}",
			"metrics.kv_used.external: is empty, so selector and pod_label"},
		{"{service: a, metrics: {waiting: {pods: a/b}}}",
			"metrics.waiting: \"a/b\" can't be the name of a metric"},
		{"{service: a, metrics: {waiting: {external: a, selector: ==}}}",
			"metrics.waiting.selector: "},
	} {
		var c kube.PoolConfig
		if err := yaml.Unmarshal([]byte(test.yaml), &c); err != nil {
			t.Fatal(err)
		}
		checkFault(t, c.Validate(), test.want)
	}
	for _, valid := range []string{
		"{service: vllm}", "{service: vllm, port: 8000}", "{service: vllm, port: http-metrics}",
		"{selector: 'app in (a,b),!canary', port: http, scheme: https, namespace: models}",
		"{inference_pool: vllm, inference_pool_group: inference.networking.x-k8s.io}",
		"{service: vllm, target: {kind: Rollout, name: a, api_version: argoproj.io/v1alpha1}}",
		"{service: vllm, metrics: {running: {pods: vllm_running}, kv_used: {external: kv, " +
			"selector: a=b, pod_label: instance}, resources: true}}",
	} {
		var c kube.PoolConfig
		if err := yaml.Unmarshal([]byte(valid), &c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", valid, err)
		}
	}
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}
