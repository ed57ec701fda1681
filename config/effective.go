package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// YAML returns the configuration with all keys, as a file that Load reads back to the same value.
func (c Config) YAML() ([]byte, error) { return writeYAML(c) }

func writeYAML(c any) ([]byte, error) {
	root, err := encodeShort(c)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return writeNode(root)
}

// encodeShort encodes a configuration, except for the settings of shadow policies that are the
// defaults.
func encodeShort(c any) (*yaml.Node, error) {
	root, err := encode(reflect.ValueOf(c))
	if err != nil {
		return nil, err
	}
	defaults, err := encode(reflect.ValueOf(Default().FlowControl.Shadow))
	if err != nil {
		return nil, err
	}
	flow := valueOf(root, "flowcontrol")
	shadow := valueOf(flow, "shadow")
	var kept []*yaml.Node
	for i := 0; i < len(shadow.Content); i += 2 {
		key, value := shadow.Content[i], shadow.Content[i+1]
		if key.Value == "policy" || !reflect.DeepEqual(value, valueOf(defaults, key.Value)) {
			kept = append(kept, key, value)
		}
	}
	shadow.Content = kept
	return root, nil
}

func writeNode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out.Bytes(), e.Close()
}

// FormatValue returns one value in YAML's syntax, in one row.
func FormatValue(v reflect.Value) string {
	n, err := encode(v)
	if err != nil {
		return err.Error()
	}
	n.Style |= yaml.FlowStyle
	line, err := yaml.Marshal(n)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(line))
}

func encode(v reflect.Value) (*yaml.Node, error) {
	switch t := v.Type(); {
	case t == durationType:
		return text(FormatDuration(time.Duration(v.Int()))), nil
	case IsSection(t):
		n := &yaml.Node{Kind: yaml.MappingNode}
		for f := range fields(v) {
			encoded := encode
			if f.overlay {
				encoded = func(table reflect.Value) (*yaml.Node, error) {
					return encodeOverlays(v, table)
				}
			}
			value, err := encoded(f.of(v))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.key, err)
			}
			n.Content = append(n.Content, text(f.key), value)
		}
		return n, nil
	case t.Kind() == reflect.Slice && !readsItself(t):
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if e := t.Elem(); !IsSection(e) || v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, element := range v.Seq2() {
			value, err := encode(element)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		return n, nil
	}
	n := new(yaml.Node)
	err := n.Encode(v.Interface())
	return n, err
}

// encodeOverlays returns the entries of a map, each with what differs from the section that
// contains the map.
func encodeOverlays(section, table reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if table.Len() == 0 {
		n.Style = yaml.FlowStyle
		return n, nil
	}
	base, err := encodeBase(section)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.SortedFunc(slices.Values(table.MapKeys()),
		func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
		own, err := encodeBase(table.MapIndex(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		n.Content = append(n.Content, text(name.String()), difference(own, base))
	}
	return n, nil
}

// encodeBase returns a section without its overlays.
func encodeBase(section reflect.Value) (*yaml.Node, error) {
	base := reflect.New(section.Type()).Elem()
	base.Set(section)
	for f := range fields(section) {
		if f.overlay {
			base.FieldByIndex(f.Index).SetZero()
		}
	}
	return encode(base)
}

// difference returns the keys of a section whose values differ from those in base.
func difference(own, base *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(own.Content); i += 2 {
		value, other := own.Content[i+1], base.Content[i+1]
		if reflect.DeepEqual(value, other) {
			continue
		}
		if value.Kind == yaml.MappingNode && other.Kind == yaml.MappingNode &&
			len(value.Content) == len(other.Content) {
			value = difference(value, other)
		}
		n.Content = append(n.Content, own.Content[i], value)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func text(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}
