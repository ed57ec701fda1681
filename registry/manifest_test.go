package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/registry"
)

// The table is judged by the schemas of the custom resources too: test/kube applies each manifest
// to an API server.
func TestManifests(t *testing.T) {
	for _, group := range rows(t, "manifests.txt") {
		verdict, what, _ := strings.Cut(group[0], ": ")
		c := read(nil, strings.Join(group[1:], "\n"))
		items, good := len(c.UseCases())+len(c.Pools()), verdict == "good"
		if good != (items == 1) || good != (len(c.Refused()) == 0) {
			t.Errorf("%s: %d items in force, refused %q", what, items, refused(c))
		}
	}
}

func TestPoolManifest(t *testing.T) {
	c := read(nil, `apiVersion: tidefill.dev/v1alpha1
kind: Pool
metadata: {name: day, namespace: llm}
spec: {models: [m], endpoints: ["http://a", "http://b"], allowImplicit: true}
---
kind: Pool
metadata: {name: night}
spec: {models: [m], selector: {matchLabels: {b: "2", a: "1"}}, role: batch, replicas: {max: 3}}
---
kind: Pool
metadata: {name: none}
spec: {}
`)
	want := []registry.Pool{{Name: "day", Models: []string{"m"}, Role: registry.RoleShared,
		AllowImplicit: true, Min: 2, Max: 2}, {Name: "night", Models: []string{"m"},
		Role: registry.RoleBatch, Max: 3}}
	var got []registry.Pool
	for _, e := range c.Pools() {
		got = append(got, e.Item.Pool())
		if err := e.Item.Pool().Validate(); err != nil {
			t.Errorf("pool %s: %v", e.Item.Name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s := c.Pools()[1].Item.Spec.Selector.String(); s != "a=1,b=2" {
		t.Errorf("selector %s", s)
	}
	if all := refused(c); len(all) != 1 || !strings.HasPrefix(all[0], "d0:12: pool none: "+
		"spec.models: is required") {
		t.Errorf("refused %q", all)
	}
}

func TestObjectives(t *testing.T) {
	text := ""
	for name, priority := range map[string]string{"up": "{priority: 5}", "zero": "{}",
		"down": "{priority: -1, poolRef: {name: p}}"} {
		text += "---\napiVersion: llm-d.ai/v1alpha2\nkind: InferenceObjective\nmetadata: {name: " +
			name + ", namespace: x}\nspec: " + priority + "\n"
	}
	c := read(nil, text)
	for name, want := range map[string]string{"up": "critical", "zero": "standard",
		"down": "flex"} {
		if o, found := c.Objective(name); !found || o.Class() != want {
			t.Errorf("%s: %+v, %v", name, o, found)
		}
	}
	if o, found := c.Objective("other"); found || len(c.Objectives()) != 3 ||
		len(c.Refused()) > 0 {
		t.Errorf("%+v, refused %q", o, refused(c))
	}
}
