package main

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

// hiddenValue stands for a secret in what a daemon shows.
const hiddenValue = "***"

// readSpec decodes the spec of an item. A field that is not known here is a fault: the daemon is of
// a later release.
func readSpec(i *client.RegistryItem, into any) error {
	faults, err := readKnown(i, into)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("read %s: %w; use the release of the daemon", i.Name, faults[0])
	}
	return err
}

// readKnown decodes what is known here of the spec of an item, and returns what is not.
func readKnown(i *client.RegistryItem, into any) ([]*strictyaml.Fault, error) {
	n, err := strictyaml.FromJSON(i.Spec)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", i.Name, err)
	}
	return strictyaml.Decode(n, "spec", into).Faults(), nil
}

func visibleTo(i *client.RegistryItem) []string {
	if len(i.VisibleTo) == 0 {
		return nil
	}
	return i.VisibleTo
}

// useCaseSet returns a set as a document has it.
func useCaseSet(i *client.RegistryItem) (s registry.UseCaseSet, err error) {
	s.Name = i.Name
	if namespace, name, inside := strings.Cut(i.Name, "/"); inside {
		s.Namespace, s.Name = namespace, name
	}
	return s, readSpec(i, &s.Spec)
}

// itemNode returns an item as a document has it, without the fields that are not set.
func itemNode(kind registry.Kind, i *client.RegistryItem) (*yaml.Node, error) {
	switch kind {
	case registry.Profiles:
		p := registry.Profile{Name: i.Name, Description: i.Description, VisibleTo: visibleTo(i)}
		err := readSpec(i, &p.Spec)
		return strictyaml.EncodeSet(p), err
	case registry.UseCases:
		s, err := useCaseSet(i)
		return strictyaml.EncodeSet(s), err
	}
	t := registry.Template{Name: i.Name, Version: i.Version, Status: registry.Status(i.Status),
		Description: i.Description, VisibleTo: visibleTo(i)}
	err := readSpec(i, &t.Spec)
	return strictyaml.EncodeSet(t), err
}

// printDocument writes items as a document, and says on errs if it lacks secrets.
func printDocument(
	w, errs io.Writer, kind registry.Kind, items []client.RegistryItem, standard string,
) error {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range items {
		n, err := itemNode(kind, &items[i])
		if err != nil {
			return err
		}
		list.Content = append(list.Content, n)
	}
	document := list
	if kind == registry.Profiles {
		document = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if standard != "" {
			document.Content = append(document.Content, text("default"), text(standard))
		}
		document.Content = append(document.Content, text("items"), list)
	}
	if hasHidden(document) {
		fmt.Fprintln(errs, "Values that look like secrets are shown as "+hiddenValue+
			": put them back before you apply the document.")
	}
	return writeYAML(w, document)
}

func text(value string) *yaml.Node { return strictyaml.Encode(value) }

func hasHidden(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, hiddenValue) {
		return true
	}
	for _, of := range n.Content {
		if hasHidden(of) {
			return true
		}
	}
	return false
}

func writeYAML(w io.Writer, n *yaml.Node) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return err
	}
	return encoder.Close()
}
