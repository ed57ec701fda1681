package registry

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/strictyaml"
)

// Document is a text of a source: a file, or an entry of a ConfigMap.
type Document struct {
	Name string // as messages show it
	// Kind is that of its items, which then are all of it. Empty: the text says which it has.
	Kind Kind
	Text []byte
	Err  error // why it can't be read; nil: it was
}

// Kind is a kind of items.
type Kind string

// The kinds.
const (
	Templates Kind = "template"
	Profiles  Kind = "profile"
	UseCases  Kind = "usecase"
	Pools     Kind = "pool"
	// Objectives are InferenceObjectives of the Gateway API Inference Extension.
	Objectives Kind = "objective"
)

// DataKey returns the name of the entry of a ConfigMap that holds items of the kind.
func (k Kind) DataKey() string { return string(k) + "s.yaml" }

const (
	// maxItems limits the items of a document.
	maxItems = 20_000
	// maxValues limits the values of all items of a document, each as often as an alias repeats it.
	// A text of the largest size has fewer without aliases.
	maxValues = 1 << 22
)

// part is the items of one kind in a document.
type part struct {
	items []*yaml.Node
	// first is the row before that of the first row of items: above 0 within a ConfigMap.
	first int
	// standard is the name of the default profile, and standardRow its row.
	standard    string
	standardRow int
	fault       *strictyaml.Fault // of the part as a whole: it can't be used
	reported    bool              // the fault is one of the document
}

// read returns what a document has of each kind. Items of ConfigMaps go before others, and of
// several ConfigMaps, and of several others, the first of a kind counts. Lists of use cases and
// manifests are joined.
func read(d Document) (parts map[Kind]*part, faults []*strictyaml.Fault) {
	parts = map[Kind]*part{}
	switch {
	case d.Err != nil:
		return parts, []*strictyaml.Fault{{Text: d.Err.Error()}}
	case d.Kind != "":
		parts[d.Kind] = entryOf(d.Kind, d.Text)
		return parts, nil
	}
	documents, fault := strictyaml.Documents(d.Text)
	if fault != nil {
		return parts, []*strictyaml.Fault{fault}
	}
	isMap := func(n *yaml.Node) bool { return valueOf(n, "kind") == "ConfigMap" }
	for _, wanted := range []bool{true, false} {
		for _, n := range documents {
			if isMap(n) != wanted {
				continue
			}
			found, fault := partsOf(n, wanted, d.Name)
			if fault != nil {
				faults = append(faults, fault)
			}
			for kind, p := range found {
				if parts[kind] == nil {
					parts[kind] = p
					continue
				}
				if kind.isManifest() && !wanted && parts[kind].first == 0 {
					parts[kind].join(p)
					continue
				}
				faults = append(faults, &strictyaml.Fault{Row: n.Line, Text: fmt.Sprintf(
					"has a second list of %ss, which is not read; join it with the first", kind)})
			}
		}
	}
	return parts, faults
}

// join adds the items of another part of the same document.
func (p *part) join(other *part) {
	p.items = append(p.items, other.items...)
	if p.fault == nil {
		p.fault = other.fault
	}
	if p.fault == nil && len(p.items) > maxItems {
		p.fault = tooMany(0, len(p.items))
	}
}

func tooMany(row, items int) *strictyaml.Fault {
	return &strictyaml.Fault{Row: row, Text: fmt.Sprintf("has %d items, at most %d are read", items,
		maxItems)}
}

// Recognizes reports whether a text has a document of the registry, which may be faulty.
func Recognizes(text []byte) bool {
	documents, fault := strictyaml.Documents(text)
	return fault == nil && slices.ContainsFunc(documents, func(n *yaml.Node) bool {
		isMap := valueOf(n, "kind") == "ConfigMap"
		parts, fault := partsOf(n, isMap, "")
		return fault == nil && len(parts) > 0
	})
}

// Unrecognized says what a document is not that has no items.
const Unrecognized = "is no list of templates or use case sets, no table with the items of " +
	"profiles, no manifest of a UseCaseSet or a Pool, and no ConfigMap with templates.yaml, " +
	"profiles.yaml or usecases.yaml"

// partsOf returns what one document of a text with the name has of each kind.
func partsOf(n *yaml.Node, isMap bool, name string) (map[Kind]*part, *strictyaml.Fault) {
	kind := valueOf(n, "kind")
	switch {
	case isMap:
		return partsOfMap(n), nil
	case manifestKind(n) != "":
		return map[Kind]*part{manifestKind(n): partOf(manifestKind(n), n)}, nil
	case n.Kind == yaml.SequenceNode && listsUseCases(n, name):
		return map[Kind]*part{UseCases: partOf(UseCases, n)}, nil
	case n.Kind == yaml.SequenceNode:
		return map[Kind]*part{Templates: partOf(Templates, n)}, nil
	case n.Kind == yaml.MappingNode && kind == "" && (has(n, "items") || has(n, "default")):
		return map[Kind]*part{Profiles: partOf(Profiles, n)}, nil
	case kind != "":
		return nil, &strictyaml.Fault{Row: n.Line, Path: "kind", Text: fmt.Sprintf("is %q, must "+
			"be one of %s; move other manifests elsewhere", kind,
			strings.Join(manifestKinds, ", "))}
	}
	return nil, &strictyaml.Fault{Row: n.Line, Text: Unrecognized}
}

// partsOfMap returns what a ConfigMap has of each kind.
func partsOfMap(n *yaml.Node) map[Kind]*part {
	parts := map[Kind]*part{}
	eachPair(child(n, "data"), func(key, value *yaml.Node) {
		i := slices.IndexFunc(DataKinds, func(k Kind) bool { return k.DataKey() == key.Value })
		if i < 0 {
			return
		}
		p := entryOf(DataKinds[i], []byte(value.Value))
		p.first = value.Line
		if value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			p.first-- // the text begins in the row of its key
		}
		if p.fault != nil && p.fault.Row > 0 {
			p.fault.Row += p.first
		}
		parts[DataKinds[i]] = p
	})
	return parts
}

// entryOf returns the items of a kind in the text of an entry.
func entryOf(kind Kind, text []byte) *part {
	documents, fault := strictyaml.Documents(text)
	switch {
	case fault != nil:
		return &part{fault: fault}
	case len(documents) == 0:
		return &part{}
	case kind.isManifest():
		p := &part{}
		for _, n := range documents {
			p.join(partOf(kind, n))
		}
		return p
	case len(documents) > 1:
		return &part{fault: &strictyaml.Fault{Row: documents[1].Line, Text: "is a second " +
			"document, which is not read; join it with the first"}}
	}
	return partOf(kind, documents[0])
}

// partOf returns the items of a kind in the root of a document.
func partOf(kind Kind, n *yaml.Node) *part {
	p := &part{}
	items := n
	if kind == Profiles {
		if n.Kind != yaml.MappingNode {
			p.fault = &strictyaml.Fault{Row: n.Line, Text: "must be a table with the keys " +
				"default and items"}
			return p
		}
		eachPair(n, func(key, value *yaml.Node) {
			switch {
			case key.Value == "items":
				items = value
			case key.Value != "default" && p.fault == nil:
				p.fault = &strictyaml.Fault{Row: key.Line, Path: key.Value, Text: "unknown key; " +
					strictyaml.Known(key.Value, []string{"default", "items"})}
			case key.Value == "default":
				p.standardRow = value.Line
				if err := value.Decode(&p.standard); err != nil && p.fault == nil {
					p.fault = &strictyaml.Fault{Row: value.Line, Path: "default",
						Text: "must be the name of a profile"}
				}
			}
		})
		if items == n { // there is none
			items = &yaml.Node{Kind: yaml.SequenceNode}
		}
	}
	if kind.isManifest() && manifestKind(n) == kind {
		items = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	switch {
	case p.fault != nil:
	case items.Kind == yaml.ScalarNode && items.Tag == "!!null":
	case items.Kind != yaml.SequenceNode:
		p.fault = &strictyaml.Fault{Row: items.Line, Text: mustBe(kind)}
	case len(items.Content) > maxItems:
		p.fault = tooMany(items.Line, len(items.Content))
	case repeated(items, map[*yaml.Node]int{}) > maxValues:
		p.fault = &strictyaml.Fault{Row: items.Line, Text: fmt.Sprintf("has more than %d values "+
			"with those that aliases repeat, which are not read", maxValues)}
	case kind.isManifest():
		for _, item := range items.Content {
			p.items = append(p.items, fromManifest(kind, item))
		}
	default:
		p.items = items.Content
	}
	return p
}

func mustBe(kind Kind) string {
	switch kind {
	case UseCases:
		return "must be a list of use case sets, or a manifest of the kind " + UseCaseSetKind
	case Pools:
		return "must be a manifest of the kind " + PoolKind
	}
	return fmt.Sprintf("must be a list of %ss", kind)
}

// repeated returns the number of values of a node, each as often as an alias repeats it, up to one
// more than maxValues. seen has those of nodes with an anchor.
func repeated(n *yaml.Node, seen map[*yaml.Node]int) (values int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor != "" {
		if before, known := seen[n]; known {
			return before
		}
		seen[n] = maxValues + 1 // within itself
		defer func() { seen[n] = values }()
	}
	values = 1
	for _, element := range n.Content {
		values = min(values+repeated(element, seen), maxValues+1)
	}
	return values
}

func eachPair(n *yaml.Node, do func(key, value *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		do(n.Content[i], n.Content[i+1])
	}
}

func child(n *yaml.Node, key string) (found *yaml.Node) {
	eachPair(n, func(k, value *yaml.Node) {
		if k.Value == key {
			found = value
		}
	})
	return found
}

func has(n *yaml.Node, key string) bool { return child(n, key) != nil }

func valueOf(n *yaml.Node, key string) string {
	if value := child(n, key); value != nil {
		return value.Value
	}
	return ""
}

// kinds lists the kinds in the order in which they are read.
var kinds = []Kind{Templates, Profiles, UseCases, Pools, Objectives}

// Kinds lists the kinds.
func Kinds() []Kind { return slices.Clone(kinds) }

// DataKinds lists the kinds of which a ConfigMap may have an entry.
var DataKinds = []Kind{Templates, Profiles, UseCases}
