package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// followed is a daemon with the least permissions that follows the use cases and pools of a
// namespace.
type followed struct {
	*world
	client *dynamic.DynamicClient
	daemon *app.App
}

// own is the version of the objects of tidefill.dev.
const own = "tidefill.dev/v1alpha1"

func follow(t *testing.T, w *world) *followed {
	t.Helper()
	apply(t, definitions+"usecasesets.tidefill.dev.yaml")
	apply(t, definitions+"pools.tidefill.dev.yaml")
	dynamics, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		t.Fatal(err)
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Kubernetes.UseCases, cfg.Registry.Kubernetes.Pools = true, true
	cfg.Kubernetes.Namespace = w.namespace
	cfg.Kubernetes.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	user := "usecases-" + w.namespace
	w.grant(user, kube.Roles("tidefill", w.namespace, cfg.Kubernetes, nil,
		kube.Documents{UseCases: true, Pools: true}))
	if err := plane.kubeconfig(cfg.Kubernetes.Kubeconfig, plane.address(), user,
		"default"); err != nil {
		t.Fatal(err)
	}
	d, _ := apptest.Start(t, cfg, app.Options{})
	return &followed{w, dynamics, d}
}

func (f *followed) resource(plural string) dynamic.ResourceInterface {
	return f.client.Resource(schema.GroupVersionResource{Group: "tidefill.dev",
		Version: "v1alpha1", Resource: plural}).Namespace(f.namespace)
}

func (f *followed) create(
	r dynamic.ResourceInterface, version, kind, name string, spec map[string]any,
) {
	f.t.Helper()
	if _, err := r.Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name,
			"namespace": f.namespace}, "spec": spec}}, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// await waits for the condition of an object, by its beginning.
func (f *followed) await(plural, name, want string) {
	f.t.Helper()
	until(f.t, func() string {
		u, err := f.resource(plural).Get(f.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		got := conditionOf(u)
		if !strings.HasPrefix(got, want) {
			return fmt.Sprintf("%s %s: %s, want %s", plural, name, got, want)
		}
		return ""
	})
}

func (f *followed) delete(plural, name string) {
	f.t.Helper()
	if err := f.resource(plural).Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// A daemon with the least permissions follows use cases and pools, and writes their status.
func TestDaemonFollowsUseCases(t *testing.T) {
	w := newWorld(t)
	objectives := w.define("inference.networking.x-k8s.io", "v1alpha2", "inferenceobjectives",
		"InferenceObjective", map[string]any{})
	f := follow(t, w)
	resource, create, await := f.resource, f.create, f.await
	of := func(pool string, models ...any) map[string]any {
		var all []any
		for _, m := range models {
			all = append(all, map[string]any{"modelName": m})
		}
		return map[string]any{"useCases": all, "poolRef": []any{map[string]any{"name": pool}}}
	}
	create(resource("usecasesets"), own, "UseCaseSet", "first", of("extra", "m"))
	create(objectives, "inference.networking.x-k8s.io/v1alpha2", "InferenceObjective", "up",
		map[string]any{"priority": int64(1), "poolRef": map[string]any{"name": "p"}})
	await("usecasesets", "first", "1 False PoolNotFound")
	create(resource("usecasesets"), own, "UseCaseSet", "second", of("extra", "m"))
	await("usecasesets", "second", `1 False Refused spec.useCases[0].modelName: is "m"`)
	create(resource("pools"), own, "Pool", "extra", map[string]any{"models": []any{"m"},
		"endpoints": []any{apptest.StartRunner(t, nil)}})
	await("pools", "extra", "1 True Accepted")
	await("usecasesets", "first", "1 True Accepted")
	// A set that is corrected is in force, and its status is of its generation.
	second, err := resource("usecasesets").Get(t.Context(), "second", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second.Object["spec"] = of("extra", "n")
	if _, err := resource("usecasesets").Update(t.Context(), second,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("usecasesets", "second", "2 True Accepted")
	// Pods of a pool are runners.
	create(resource("pools"), own, "Pool", "pods", map[string]any{"models": []any{"m"},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "vllm"}},
		"replicas": map[string]any{"max": int64(2)}})
	await("pools", "pods", "1 True Accepted")
	awaitDegraded(t, f.daemon, "")
	f.delete("pools", "extra")
	await("usecasesets", "first", "1 False PoolNotFound")
}

// The runner of a deleted Pool gets no line any more, though a batch has many for it, and the pool
// is not listed.
func TestDeletedPoolGetsNoLines(t *testing.T) {
	f := follow(t, newWorld(t))
	emulated, err := url.Parse(apptest.StartRunner(t, func(c *emulator.Config) {
		c.Models = []string{"n"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got atomic.Int64
	passOn := httputil.NewSingleHostReverseProxy(emulated)
	runner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			got.Add(1)
			select { // a batch that takes hours
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		passOn.ServeHTTP(w, r)
	}))
	t.Cleanup(runner.Close)
	f.create(f.resource("pools"), own, "Pool", "extra", map[string]any{"models": []any{"n"},
		"endpoints": []any{runner.URL}})
	f.await("pools", "extra", "1 True Accepted")
	c, err := client.New(f.daemon.URL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	submit := func(lines string) client.Batch {
		t.Helper()
		file, err := c.Upload(t.Context(), "l.jsonl", strings.NewReader(lines), int64(len(lines)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.CreateBatch(t.Context(), client.BatchRequest{InputFileID: file.ID,
			Endpoint: "/v1/chat/completions", CompletionWindow: "24h"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	submit(strings.ReplaceAll(apptest.BatchFile(20_000), `"model":"m"`, `"model":"n"`))
	until(t, func() string {
		if got.Load() == 0 {
			return "the runner of the pool got no line"
		}
		return ""
	})
	pools := func() string {
		answer, err := http.Get(f.daemon.AdminURL() + "/admin/pools")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	until(t, func() string { // its first decision is recorded within a second
		if !strings.Contains(pools(), `"name":"extra"`) {
			return "the pool is not listed: " + pools()
		}
		return ""
	})
	f.delete("pools", "extra")
	until(t, func() string {
		if strings.Contains(pools(), `"name":"extra"`) {
			return "the deleted pool is listed: " + pools()
		}
		return ""
	})
	before := got.Load()
	// Meanwhile the other pool does a batch.
	other := submit(apptest.BatchFile(100))
	until(t, func() string {
		if other, err = c.Batch(t.Context(), other.ID); err != nil || !other.Ended() {
			return fmt.Sprintf("the batch of the other pool is %s, %v", other.Status, err)
		}
		return ""
	})
	if after := got.Load(); after != before {
		t.Errorf("the runner of a deleted pool got %d lines", after-before)
	}
}

// conditionOf returns the observed generation and the condition Accepted of an object.
func conditionOf(u *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if of, is := c.(map[string]any); is && of["type"] == "Accepted" {
			return fmt.Sprint(observed, " ", of["status"], " ", of["reason"], " ", of["message"])
		}
	}
	return "no condition"
}
