package registry

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// APIVersion is that of Tidefill's own manifests.
const APIVersion = "tidefill.dev/v1alpha1"

// The kinds of manifests.
const (
	UseCaseSetKind         = "UseCaseSet"
	PoolKind               = "Pool"
	InferenceObjectiveKind = "InferenceObjective"
)

// manifests lists what the kinds of manifests are in the registry.
var manifests = map[string]Kind{UseCaseSetKind: UseCases, PoolKind: Pools,
	InferenceObjectiveKind: Objectives}

// manifestKinds lists the kinds of manifests of which a document may have items.
var manifestKinds = []string{"ConfigMap", UseCaseSetKind, PoolKind, InferenceObjectiveKind}

// isManifest reports whether items of the kind are manifests.
func (k Kind) isManifest() bool { return k == UseCases || k == Pools || k == Objectives }

// manifestKind returns the kind of a node's manifest; empty: it is none.
func manifestKind(n *yaml.Node) Kind { return manifests[valueOf(n, "kind")] }

// listsUseCases reports whether a list of the text with the name is one of use case sets: an item
// has the keys of one, or the name says so and no item has those of a template.
func listsUseCases(n *yaml.Node, name string) bool {
	template := false
	for _, item := range n.Content {
		spec := child(item, "spec")
		if manifestKind(item) == UseCases || has(item, "useCases") || has(spec, "useCases") ||
			has(spec, "poolRef") {
			return true
		}
		template = template || has(spec, "engine")
	}
	return name[strings.LastIndexAny(name, `/\`)+1:] == UseCases.DataKey() && !template
}

// fromManifest returns a manifest of the kind as an item of a list: its metadata has more than the
// name and the namespace, and its status is of no use here.
func fromManifest(kind Kind, n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if manifestKind(n) != kind {
		return n
	}
	item := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	eachPair(n, func(key, value *yaml.Node) {
		switch key.Value {
		case "kind", "status":
		case "metadata":
			eachPair(value, func(key, value *yaml.Node) {
				if slices.Contains([]string{"name", "namespace"}, key.Value) {
					item.Content = append(item.Content, key, value)
				}
			})
		default:
			item.Content = append(item.Content, key, value)
		}
	})
	return item
}
