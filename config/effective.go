package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// YAML writes the configuration with every key in it, as a file that Load reads back to the same.
func (c Config) YAML() ([]byte, error) {
	root, err := encode(reflect.ValueOf(c))
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out.Bytes(), e.Close()
}

// FormatValue writes one value in YAML's syntax, on one line.
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
		for f := range fields(t) {
			value, err := encode(v.FieldByIndex(f.Index))
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
	return n, n.Encode(v.Interface())
}

func text(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}
