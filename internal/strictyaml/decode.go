// Package strictyaml decodes documents that people write by hand: unknown and repeated keys are
// faults, each fault has the path of its value, and each path has a row. Size, depth and aliases
// are bounded, because a document may come from anybody who may write a ConfigMap.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/suggest"
	"github.com/tidefill/tidefill/internal/yamlfault"
)

const (
	// MaxBytes limits a text.
	MaxBytes = 8 << 20
	// maxDepth limits sections within sections.
	maxDepth = 32
	// maxValues limits the values that are decoded at once, each as often as an alias repeats it.
	maxValues = 1 << 14
	// maxFaults limits the faults that are reported of a value.
	maxFaults = 100
)

// Fault is something that is wrong in a text.
type Fault struct {
	Row  int    // 0: unknown
	Path string // of the value in its document; empty: the document itself
	Text string
}

// Error returns the path and the text.
func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Text
	}
	return f.Path + ": " + f.Text
}

// Documents returns the documents of a text, without those that are empty.
func Documents(text []byte) (documents []*yaml.Node, fault *Fault) {
	if len(text) > MaxBytes {
		return nil, &Fault{Text: fmt.Sprintf("has %d bytes, at most %d are read; split it",
			len(text), MaxBytes)}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		switch {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			row, what := yamlfault.Of(err, text)
			return nil, &Fault{Row: row, Text: what}
		case n.Kind == yaml.DocumentNode && len(n.Content) == 1 && n.Content[0].Tag != "!!null":
			documents = append(documents, n.Content[0])
		}
	}
}

// Values are decoded values with their rows.
type Values struct {
	root   *yaml.Node
	path   string // of the root
	left   int    // values that may still be decoded
	faults []*Fault
}

// step is the last step of a path. Paths are written only for faults.
type step struct {
	up    *step
	key   string // empty: index counts
	index int
}

func (s *step) String() string {
	switch {
	case s == nil:
		return ""
	case s.key == "":
		return fmt.Sprintf("%s[%d]", s.up, s.index)
	case s.up == nil:
		return s.key
	}
	return s.up.String() + "." + s.key
}

// Decode sets the variable that into points to from a node at a path. Fields have yaml tags; one
// with the option inline is a map[string]any of all other keys. An absent key and one without a
// value leave a field as it is.
func Decode(n *yaml.Node, path string, into any) *Values {
	v := &Values{root: n, path: path, left: maxValues}
	var from *step
	if path != "" {
		from = &step{key: path}
	}
	v.decode(n, from, reflect.ValueOf(into).Elem(), 0)
	return v
}

// Faults returns what is wrong with the values.
func (v *Values) Faults() []*Fault { return v.faults }

// Row returns the row of a path, or else of the section around it.
func (v *Values) Row(path string) int {
	n := v.root
	path = strings.TrimPrefix(strings.TrimPrefix(path, v.path), ".")
	for _, key := range strings.FieldsFunc(path, func(r rune) bool {
		return r == '.' || r == '[' || r == ']'
	}) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := (*yaml.Node)(nil)
		switch index, err := strconv.Atoi(key); {
		case n.Kind == yaml.SequenceNode && err == nil && index >= 0 && index < len(n.Content):
			next = n.Content[index]
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.Line
}

func (v *Values) fault(n *yaml.Node, path *step, format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, &Fault{n.Line, path.String(), fmt.Sprintf(format, args...)})
	}
}

func (v *Values) decode(n *yaml.Node, path *step, to reflect.Value, depth int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if v.left--; v.left <= 0 || depth > maxDepth {
		if v.left == 0 || depth == maxDepth+1 {
			v.fault(n, path, "is too large or too deep: at most %d values and %d levels are read",
				maxValues, maxDepth)
		}
		return
	}
	if n.Tag == "!!null" {
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		element := reflect.New(to.Type().Elem())
		v.decode(n, path, element.Elem(), depth)
		to.Set(element)
	case reflect.Struct:
		v.section(n, path, to, depth)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			v.fault(n, path, "is %s, must be a list", shown(n))
			return
		}
		if len(n.Content) > v.left {
			v.fault(n, path, "has %d values, too many: at most %d are read", len(n.Content),
				maxValues)
			return
		}
		list := reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content))
		for i, element := range n.Content {
			v.decode(element, &step{up: path, index: i}, list.Index(i), depth+1)
		}
		to.Set(list)
	case reflect.Map:
		v.table(n, path, to, depth)
	case reflect.Interface:
		if value := v.any(n, path, depth); value != nil {
			to.Set(reflect.ValueOf(value))
		}
	default:
		v.scalar(n, path, to)
	}
}

// section decodes a mapping into a struct.
func (v *Values) section(n *yaml.Node, path *step, to reflect.Value, depth int) {
	if n.Kind != yaml.MappingNode {
		v.fault(n, path, "is %s, must have keys of its own", shown(n))
		return
	}
	fields := fieldsOf(to.Type())
	v.eachPair(n, path, func(key, value *yaml.Node) {
		field, known := fields.index[key.Value]
		at := &step{up: path, key: key.Value}
		switch {
		case known:
			v.decode(value, at, to.Field(field), depth+1)
		case fields.rest >= 0:
			rest := to.Field(fields.rest)
			if rest.IsNil() {
				rest.Set(reflect.MakeMap(rest.Type()))
			}
			element := reflect.New(rest.Type().Elem()).Elem()
			v.decode(value, at, element, depth+1)
			rest.SetMapIndex(reflect.ValueOf(key.Value), element)
		default:
			v.fault(key, at, "unknown key; %s", Known(key.Value, fields.names))
		}
	})
}

// fields are the keys of a struct.
type fields struct {
	index map[string]int
	names []string
	rest  int // field of all other keys; -1: there is none
}

var cached sync.Map // of *fields by reflect.Type

func fieldsOf(t reflect.Type) *fields {
	if f, known := cached.Load(t); known {
		return f.(*fields)
	}
	f := &fields{index: map[string]int{}, rest: -1}
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			f.rest = i
		case name != "" && name != "-":
			f.index[name], f.names = i, append(f.names, name)
		}
	}
	cached.Store(t, f)
	return f
}

func (v *Values) table(n *yaml.Node, path *step, to reflect.Value, depth int) {
	if n.Kind != yaml.MappingNode {
		v.fault(n, path, "is %s, must be a table of names and values", shown(n))
		return
	}
	table := reflect.MakeMapWithSize(to.Type(), len(n.Content)/2)
	v.eachPair(n, path, func(key, value *yaml.Node) {
		element := reflect.New(to.Type().Elem()).Elem()
		v.decode(value, &step{up: path, key: key.Value}, element, depth+1)
		table.SetMapIndex(reflect.ValueOf(key.Value).Convert(to.Type().Key()), element)
	})
	to.Set(table)
}

// any decodes a value of any type: text, a number, true or false, a list or a table.
func (v *Values) any(n *yaml.Node, path *step, depth int) any {
	switch n.Kind {
	case yaml.SequenceNode:
		var list []any
		v.decode(n, path, reflect.ValueOf(&list).Elem(), depth)
		return list
	case yaml.MappingNode:
		var table map[string]any
		v.decode(n, path, reflect.ValueOf(&table).Elem(), depth)
		return table
	}
	var value any
	if err := n.Decode(&value); err != nil {
		v.fault(n, path, "is %s, which can't be read: %v", shown(n), err)
	}
	return value
}

func (v *Values) eachPair(n *yaml.Node, path *step, do func(key, value *yaml.Node)) {
	seen := make(map[string]int, min(len(n.Content)/2, maxValues))
	for i := 0; i+1 < len(n.Content) && v.left > 0; i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			v.fault(key, path, "has a key that is %s", shown(key))
			continue
		}
		if first, twice := seen[key.Value]; twice {
			v.fault(key, &step{up: path, key: key.Value}, "is set twice, first in row %d; "+
				"remove one", first)
			continue
		}
		seen[key.Value] = key.Line
		do(key, n.Content[i+1])
	}
}

func (v *Values) scalar(n *yaml.Node, path *step, to reflect.Value) {
	if n.Kind == yaml.ScalarNode {
		if to.Kind() == reflect.String && n.Tag != "!!binary" {
			to.SetString(n.Value)
			return
		}
		if n.Decode(to.Addr().Interface()) == nil {
			return
		}
	}
	v.fault(n, path, "is %s, must be %s", shown(n), kind(to.Type()))
}

// Known returns a remedy for a name that is none of the known ones.
func Known(name string, known []string) string {
	const shownNames = 40
	if near := suggest.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) > shownNames {
		return fmt.Sprintf("known are %s and %d others", strings.Join(known[:shownNames], ", "),
			len(known)-shownNames)
	}
	return "known are " + strings.Join(known, ", ")
}

// kind returns a type in words.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	default:
		return "a text"
	}
}

// shown returns the value of a node, without its end if it is long.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a table"
	case yaml.SequenceNode:
		return "a list"
	}
	const length = 64
	if len(n.Value) > length {
		return fmt.Sprintf("%.*q…", length, n.Value)
	}
	return fmt.Sprintf("%q", n.Value)
}
