package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/test/deploy/chart"
)

// The chart grants what autoscale/kube says that the configuration needs, and no more.
func TestRolesAreTheLeast(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, name, values string) {
		for _, r := range []chart.Release{installed, {Name: "night-tidefill", Namespace: "llm"}} {
			checkRoles(t, r, name, values)
		}
	})
}

// The Role beside the plain manifests is that of the default names, and bound to their account.
func TestRoleOfTheRegistry(t *testing.T) {
	objects := manifests(t, manifestsDir, "registry.yaml")
	registry := config.Default().Registry.Kubernetes
	registry.Namespace = "aibrix-system"
	want := kube.Roles("tidefill", installed.Namespace, kube.DefaultConfig(), nil,
		kube.ConfigMaps{Namespace: registry.Namespace, Names: registry.Names()})
	var role rbacv1.Role
	typed(t, of(objects, "Role")[0], &role)
	if diff := cmp.Diff(want, []rbacv1.Role{role}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	set, _ := podOf(t, manifests(t, manifestsDir, "tidefill.yaml"))
	var b rbacv1.RoleBinding
	typed(t, of(objects, "RoleBinding")[0], &b)
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: installed.Namespace,
		Name: set.Template.Spec.ServiceAccountName}
	if diff := cmp.Diff([]rbacv1.Subject{subject}, b.Subjects); diff != "" {
		t.Errorf("subjects: -want +got\n%s", diff)
	}
	if b.Namespace != role.Namespace || b.RoleRef.Name != role.Name {
		t.Errorf("the RoleBinding %s/%s is to %s", b.Namespace, b.Name, b.RoleRef.Name)
	}
}

// Two releases in a namespace decide for themselves.
func TestReleasesHaveLeasesOfTheirOwn(t *testing.T) {
	values := read(t, "testdata/values/pools.yaml")
	for _, name := range []string{"tidefill", "night-tidefill"} {
		_, cfg := podOf(t, render(t, chart.Release{Name: name, Namespace: "llm"}, values))
		if cfg.Kubernetes.Lease != name {
			t.Errorf("the Lease of the release %s is %s", name, cfg.Kubernetes.Lease)
		}
	}
	_, cfg := podOf(t, render(t, installed, read(t, "testdata/values/outside.yaml")))
	if cfg.Kubernetes.Lease != "" {
		t.Errorf("the Lease is %s, and the values want none", cfg.Kubernetes.Lease)
	}
}

func checkRoles(t *testing.T, r chart.Release, name, values string) {
	t.Helper()
	objects := render(t, r, values)
	set, cfg := podOf(t, objects)
	var pools []kube.Watched
	for _, p := range cfg.Pools {
		pools = append(pools, kube.Watched{Name: p.Name, PoolConfig: p.Kubernetes})
	}
	registry := cfg.Registry.Kubernetes
	want := kube.Roles(r.Name, r.Namespace, cfg.Kubernetes, pools,
		kube.ConfigMaps{Namespace: registry.Namespace, Names: registry.Names()},
		kube.Documents{Namespace: registry.Namespace, UseCases: registry.UseCases,
			Pools: registry.Pools})
	if name == "outside" {
		want = nil // rbac.create is false
	}
	var got []rbacv1.Role
	for _, o := range of(objects, "Role") {
		var role rbacv1.Role
		typed(t, o, &role)
		role.Labels = nil
		got = append(got, role)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	bindings := of(objects, "RoleBinding")
	if len(bindings) != len(want) {
		t.Fatalf("%d RoleBindings for %d Roles", len(bindings), len(want))
	}
	for i, o := range bindings {
		var b rbacv1.RoleBinding
		typed(t, o, &b)
		subject := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: r.Namespace,
			Name: set.Template.Spec.ServiceAccountName}}
		if diff := cmp.Diff(subject, b.Subjects); diff != "" {
			t.Errorf("subjects: -want +got\n%s", diff)
		}
		if b.Namespace != want[i].Namespace || b.RoleRef.Name != want[i].Name {
			t.Errorf("the RoleBinding %s/%s is to %s", b.Namespace, b.Name, b.RoleRef.Name)
		}
	}
	if len(of(objects, "ClusterRole")) > 0 {
		t.Error("there is a ClusterRole")
	}
}
