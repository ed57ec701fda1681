package registry

import (
	"fmt"
	"slices"

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
// several ConfigMaps, and of several others, the first of a kind counts.
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
			found, fault := partsOf(n, wanted)
			if fault != nil {
				faults = append(faults, fault)
			}
			for kind, p := range found {
				if parts[kind] == nil {
					parts[kind] = p
					continue
				}
				faults = append(faults, &strictyaml.Fault{Row: n.Line, Text: fmt.Sprintf(
					"has a second list of %ss, which is not read; join it with the first", kind)})
			}
		}
	}
	return parts, faults
}

// Recognizes reports whether a text has a document of templates or profiles, which may be faulty.
func Recognizes(text []byte) bool {
	documents, fault := strictyaml.Documents(text)
	return fault == nil && slices.ContainsFunc(documents, func(n *yaml.Node) bool {
		isMap := valueOf(n, "kind") == "ConfigMap"
		parts, fault := partsOf(n, isMap)
		return fault == nil && len(parts) > 0
	})
}

// partsOf returns what one document has of each kind.
func partsOf(n *yaml.Node, isMap bool) (map[Kind]*part, *strictyaml.Fault) {
	switch {
	case isMap:
		return partsOfMap(n), nil
	case n.Kind == yaml.SequenceNode:
		return map[Kind]*part{Templates: partOf(Templates, n)}, nil
	case n.Kind == yaml.MappingNode && (has(n, "items") || has(n, "default")):
		return map[Kind]*part{Profiles: partOf(Profiles, n)}, nil
	}
	return nil, &strictyaml.Fault{Row: n.Line, Text: "is no list of templates, no table with the " +
		"items of profiles, and no ConfigMap with templates.yaml or profiles.yaml"}
}

// partsOfMap returns what a ConfigMap has of each kind.
func partsOfMap(n *yaml.Node) map[Kind]*part {
	parts := map[Kind]*part{}
	eachPair(child(n, "data"), func(key, value *yaml.Node) {
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.DataKey() == key.Value })
		if i < 0 {
			return
		}
		p := entryOf(kinds[i], []byte(value.Value))
		p.first = value.Line
		if value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			p.first-- // the text begins in the row of its key
		}
		if p.fault != nil && p.fault.Row > 0 {
			p.fault.Row += p.first
		}
		parts[kinds[i]] = p
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
	switch {
	case p.fault != nil:
	case items.Kind == yaml.ScalarNode && items.Tag == "!!null":
	case items.Kind != yaml.SequenceNode:
		p.fault = &strictyaml.Fault{Row: items.Line, Text: fmt.Sprintf("must be a list of %ss",
			kind)}
	case len(items.Content) > maxItems:
		p.fault = &strictyaml.Fault{Row: items.Line, Text: fmt.Sprintf("has %d items, at most %d "+
			"are read", len(items.Content), maxItems)}
	case repeated(items, map[*yaml.Node]int{}) > maxValues:
		p.fault = &strictyaml.Fault{Row: items.Line, Text: fmt.Sprintf("has more than %d values "+
			"with those that aliases repeat, which are not read", maxValues)}
	default:
		p.items = items.Content
	}
	return p
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
var kinds = []Kind{Templates, Profiles}
