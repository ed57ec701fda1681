package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Encode returns a value as a node that Decode reads as the same value. Fields have their order. An
// unset pointer, list or table is null.
func Encode(v any) *yaml.Node { return encode(reflect.ValueOf(v), false) }

// EncodeSet is Encode without the fields that Decode leaves as they are: those that are unset, and
// sections without any other.
func EncodeSet(v any) *yaml.Node { return encode(reflect.ValueOf(v), true) }

func encode(v reflect.Value, set bool) *yaml.Node {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return null()
		}
		n := encode(v.Elem(), set)
		if of := v.Elem(); v.Kind() == reflect.Interface && of.Kind() == reflect.Float64 &&
			n.Tag == "!!int" { // nothing else says that it is no integer
			n.Tag, n.Value = "!!float", n.Value+".0"
		}
		return n
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return scalar(v)
		}
		return encodeSection(v, set)
	case reflect.Slice:
		if v.IsNil() {
			return null()
		}
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			list.Content = append(list.Content, encode(v.Index(i), set))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return null()
		}
		table := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		addEntries(table, v, set)
		return table
	}
	return scalar(v)
}

func encodeSection(v reflect.Value, set bool) *yaml.Node {
	section := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		field := v.Field(i)
		switch {
		case option == "inline":
			addEntries(section, field, set)
		case name == "" || name == "-":
		case set && field.IsZero():
		default:
			value := encode(field, set)
			if field.Kind() == reflect.Struct && set && len(value.Content) == 0 {
				continue
			}
			section.Content = append(section.Content, scalar(reflect.ValueOf(name)), value)
		}
	}
	return section
}

// addEntries adds the entries of a map, by their names.
func addEntries(to *yaml.Node, table reflect.Value, set bool) {
	names := make(map[string]reflect.Value, table.Len())
	for entries := table.MapRange(); entries.Next(); {
		names[entries.Key().String()] = entries.Value()
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		to.Content = append(to.Content, scalar(reflect.ValueOf(name)), encode(names[name], set))
	}
}

func null() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"} }

// scalar returns a node of a value without parts, quoted if it would be read as another type.
func scalar(v reflect.Value) *yaml.Node {
	n := new(yaml.Node)
	if err := n.Encode(v.Interface()); err != nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle,
			Value: fmt.Sprint(v.Interface())}
	}
	return n
}

// JSON returns a node that Encode returned in JSON. What JSON has no type for is a text.
func JSON(n *yaml.Node) json.RawMessage {
	var b bytes.Buffer
	writeJSON(&b, n)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	begin, end, step := byte('['), byte(']'), 1
	switch {
	case n.Kind == yaml.MappingNode:
		begin, end, step = '{', '}', 2
	case n.Kind != yaml.SequenceNode:
		writeScalar(b, n)
		return
	}
	b.WriteByte(begin)
	for i := 0; i < len(n.Content); i += step {
		if i > 0 {
			b.WriteByte(',')
		}
		if step == 2 {
			writeText(b, n.Content[i].Value)
			b.WriteByte(':')
		}
		writeJSON(b, n.Content[i+step-1])
	}
	b.WriteByte(end)
}

func writeScalar(b *bytes.Buffer, n *yaml.Node) {
	var number float64
	switch {
	case n.Tag == "!!null", n.Tag == "!!bool":
		b.WriteString(n.Value)
	case (n.Tag == "!!int" || n.Tag == "!!float" && n.Decode(&number) == nil &&
		!math.IsNaN(number) && !math.IsInf(number, 0)) && json.Valid([]byte(n.Value)):
		b.WriteString(n.Value)
	default:
		writeText(b, n.Value)
	}
}

func writeText(b *bytes.Buffer, text string) {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text has no fault
	}
	b.Write(encoded)
}

// FromJSON returns JSON as a node, for Decode and as YAML.
func FromJSON(text []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return fromJSON(d, 0)
}

func fromJSON(d *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch value := token.(type) {
	case nil:
		return null(), nil
	case json.Number:
		n.Tag, n.Value = "!!int", value.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
		return n, nil
	case json.Delim:
		if depth > maxDepth {
			return nil, fmt.Errorf("JSON has more than %d levels", maxDepth)
		}
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if value == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for d.More() {
			element, err := fromJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, element)
		}
		_, err := d.Token()
		return n, err
	default:
		err := n.Encode(token)
		return n, err
	}
}
