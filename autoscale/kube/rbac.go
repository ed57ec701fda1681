package kube

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permitted is what a daemon reads beside pools: ConfigMaps or Documents.
type Permitted interface {
	// permit adds the rules to those of namespaces. own is that of the daemon.
	permit(in func(namespace string) *ruleSet, own, lease string)
}

func (m ConfigMaps) permit(in func(string) *ruleSet, _, _ string) {
	if len(m.Names) > 0 {
		in(m.Namespace).add("", "configmaps", []string{"list", "watch"}, m.Names...)
	}
}

func (d Documents) permit(in func(string) *ruleSet, own, lease string) {
	namespace := cmp.Or(d.Namespace, own)
	watch, write := []string{"list", "watch"}, []string{"patch"}
	if d.UseCases {
		in(namespace).add(ownGroup, "usecasesets", watch)
		in(namespace).add(ownGroup, "usecasesets/status", write)
		for _, version := range inferenceObjectives {
			in(namespace).add(version.Group, version.Resource, watch)
		}
	}
	if d.Pools { // which may be by pods or InferencePools
		in(namespace).add(ownGroup, "pools", watch)
		in(namespace).add(ownGroup, "pools/status", write)
		in(namespace).add(inferenceGroup, "inferencepools", watch)
		in(namespace).add("", "pods", watch)
		if lease != "" {
			in(own).addLease(lease)
		}
	}
}

// Roles returns the least permissions that the pools and what else is read need: a Role named name
// for each namespace, own being the namespace of the daemon. Besides, the daemon reads which
// resources an API version has, which the ClusterRole system:discovery permits to everybody.
func Roles(
	name, own string, cfg Config, pools []Watched, read ...Permitted,
) []rbacv1.Role {
	rules := map[string]*ruleSet{}
	in := func(namespace string) *ruleSet {
		if rules[namespace] == nil {
			rules[namespace] = &ruleSet{}
		}
		return rules[namespace]
	}
	if cfg.Namespace != "" {
		own = cfg.Namespace
	}
	for _, p := range pools {
		if p.IsZero() {
			continue
		}
		c := p.withDefaults(own)
		in(c.Namespace).addPool(c)
		if cfg.Lease != "" {
			in(own).addLease(cfg.Lease)
		}
	}
	for _, r := range read {
		r.permit(in, own, cfg.Lease)
	}
	var roles []rbacv1.Role
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		roles = append(roles, rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(),
				Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Rules:      rules[namespace].rules,
		})
	}
	return roles
}

// ruleSet collects different rules.
type ruleSet struct{ rules []rbacv1.PolicyRule }

// add permits verbs on a resource; without names, on all objects.
func (s *ruleSet) add(group, resource string, verbs []string, names ...string) {
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
		Verbs: verbs, ResourceNames: names}
	if !slices.ContainsFunc(s.rules, func(r rbacv1.PolicyRule) bool {
		return reflect.DeepEqual(r, rule)
	}) {
		s.rules = append(s.rules, rule)
	}
}

func (s *ruleSet) addPool(c PoolConfig) {
	watch := []string{"list", "watch"}
	switch {
	case c.Service != "":
		s.add("", "services", watch, c.Service)
		s.add("discovery.k8s.io", "endpointslices", watch)
	case c.InferencePool != "":
		s.add(c.InferencePoolGroup, "inferencepools", watch, c.InferencePool)
	}
	s.add("", "pods", watch)
	if c.usesCosts() {
		s.add("", "pods", []string{"patch"})
	}
	if t := c.Target; t.Name != "" {
		version, _ := schema.ParseGroupVersion(t.APIVersion)
		resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(t.Kind))
		s.add(version.Group, resource.Resource, watch, t.Name)
		s.add(version.Group, resource.Resource+"/scale", []string{"get"}, t.Name)
	}
	for _, m := range c.Metrics.all() {
		if m.Pods != "" {
			s.add("custom.metrics.k8s.io", "pods/"+m.Pods, []string{"get"})
		}
		if m.External != "" {
			s.add("external.metrics.k8s.io", m.External, []string{"list"})
		}
	}
	if c.Metrics.Resources {
		s.add("metrics.k8s.io", "pods", watch[:1])
	}
}

// addLease permits what an election needs. No rule can limit creation to a name.
func (s *ruleSet) addLease(name string) {
	s.add("coordination.k8s.io", "leases", []string{"create"})
	s.add("coordination.k8s.io", "leases", []string{"get", "update"}, name)
}
