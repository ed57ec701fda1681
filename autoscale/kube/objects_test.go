package kube

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// objectsOf returns what follows versions that an API server of a test has.
func objectsOf(
	t *testing.T, optional bool, versions []schema.GroupVersionResource, served ...string,
) (*Objects, *fake.FakeDynamicClient) {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{}
	for _, v := range versions {
		kinds[v] = "UseCaseSetList"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	for _, version := range served {
		discovery.Resources = append(discovery.Resources, &metav1.APIResourceList{
			GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: versions[0].Resource}}})
	}
	return newObjects(&clients{dynamic: client, discovery: discovery}, "llm", optional,
		versions), client
}

func runObjects(t *testing.T, o *Objects) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-o.Listed()
}

func TestObjectsAreFollowed(t *testing.T) {
	o, client := objectsOf(t, false, useCaseSets, "tidefill.dev/v1alpha1")
	if _, listed, err := o.Read(); listed || err == nil {
		t.Errorf("before it runs: listed %v, error %v", listed, err)
	}
	runObjects(t, o)
	if got := o.String(); got != "usecasesets.tidefill.dev in namespace llm (v1alpha1)" {
		t.Errorf("it is %s", got)
	}
	awaitThat(t, "the fake server has a watch", func() bool {
		return o.copies.source.lostAt().IsZero()
	})
	api := client.Resource(useCaseSets[0]).Namespace("llm")
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tidefill.dev/v1alpha1",
		"kind": "UseCaseSet", "metadata": map[string]any{"name": "a", "namespace": "llm",
			"generation": int64(3), "labels": map[string]any{"x": "y"}},
		"spec": map[string]any{"useCases": []any{}}}}
	if _, err := api.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	manifests := func() map[string]string {
		all, _, err := o.Read()
		if err != nil {
			t.Error(err)
		}
		return all
	}
	awaitThat(t, "it is read", func() bool { return len(manifests()) == 1 })
	text := manifests()["a"]
	if !strings.Contains(text, `"spec":{"useCases":[]}`) || strings.Contains(text, "labels") {
		t.Errorf("read %s", text)
	}
	condition := metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue,
		Reason: "Accepted", Message: "It is."}
	patches := func() (all []string) {
		for _, a := range client.Actions() {
			if p, is := a.(clienttesting.PatchAction); is {
				all = append(all, a.GetSubresource()+" "+string(p.GetPatch()))
			}
		}
		return all
	}
	if err := o.SetCondition(t.Context(), "a", condition); err != nil {
		t.Fatal(err)
	}
	var written struct {
		Status struct {
			ObservedGeneration int64
			Conditions         []metav1.Condition
		}
	}
	if got := patches(); len(got) != 1 || !strings.HasPrefix(got[0], "status ") {
		t.Fatalf("patches %q", got)
	}
	if err := json.Unmarshal([]byte(patches()[0][len("status "):]), &written); err != nil ||
		written.Status.ObservedGeneration != 3 || len(written.Status.Conditions) != 1 ||
		written.Status.Conditions[0].ObservedGeneration != 3 ||
		written.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("written %+v, %v", written, err)
	}
	// What is there already is not written again, and neither is what no object has.
	awaitThat(t, "the status is read", func() bool {
		all, _ := o.copies.get()
		return len(all["a"].conditions) == 1
	})
	for _, name := range []string{"a", "other"} {
		if err := o.SetCondition(t.Context(), name, condition); err != nil {
			t.Error(err)
		}
	}
	if got := patches(); len(got) != 1 {
		t.Errorf("written again: %q", got)
	}
	if manifests()["a"] != text {
		t.Error("a status changes the manifest")
	}
}

// Of several versions the first one that the API server has is followed, and none need exist.
func TestVersionsOfObjects(t *testing.T) {
	for served, want := range map[string]string{
		"":                  "inferenceobjectives.llm-d.ai in namespace llm (not installed)",
		"llm-d.ai/v1alpha2": "inferenceobjectives.llm-d.ai in namespace llm (v1alpha2)",
		"inference.networking.x-k8s.io/v1alpha2": "inferenceobjectives." +
			"inference.networking.x-k8s.io in namespace llm (v1alpha2)",
	} {
		o, _ := objectsOf(t, true, inferenceObjectives, strings.Fields(served)...)
		runObjects(t, o)
		awaitThat(t, "it is known what there is", func() bool {
			all, listed, err := o.Read()
			return listed && err == nil && len(all) == 0
		})
		if o.String() != want {
			t.Errorf("%q: it is %s, want %s", served, o, want)
		}
	}
	o, _ := objectsOf(t, false, useCaseSets)
	runObjects(t, o)
	if _, listed, err := o.Read(); !listed || err == nil ||
		!strings.Contains(err.Error(), "has no usecasesets.tidefill.dev; apply the custom") {
		t.Errorf("listed %v, error %v", listed, err)
	}
}

func TestRolesOfDocuments(t *testing.T) {
	cfg := DefaultConfig()
	roles := Roles("tidefill", "llm", cfg, nil, Documents{Namespace: "teams", UseCases: true},
		Documents{Pools: true})
	var got []string
	for _, role := range roles {
		for _, r := range role.Rules {
			got = append(got, role.Namespace+" "+strings.Join(r.Resources, ",")+" "+
				strings.Join(r.Verbs, ","))
		}
	}
	want := "llm pools list,watch; llm pools/status patch; llm inferencepools list,watch; " +
		"llm pods list,watch; llm leases create; llm leases get,update; " +
		"teams usecasesets list,watch; teams usecasesets/status patch; " +
		"teams inferenceobjectives list,watch; teams inferenceobjectives list,watch"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s", strings.Join(got, "; "))
	}
	if len(Roles("tidefill", "llm", cfg, nil, Documents{})) > 0 {
		t.Error("there are roles for nothing")
	}
}
