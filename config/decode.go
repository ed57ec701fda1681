package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder decodes YAML into a configuration. It collects all faults, and the origin of each value.
type decoder struct {
	name     string            // of the file; empty: there is none
	origin   string            // name of the file or flag that is being decoded
	root     reflect.Value     // the complete configuration
	places   map[string]string // origin of each path, as file:line
	written  map[string]string // the same without the sections around settings
	faults   []error
	overlays []func() // decode overlays, after all that they are based on
	final    bool     // overlays are being decoded
	// inherits has the path from which each entry of an overlay inherits, by the entry's path.
	inherits map[string]string
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("%s: "+format, append([]any{d.place(n)}, args...)...))
}

func (d *decoder) place(n *yaml.Node) string {
	if n.Line <= 0 {
		return d.origin
	}
	return fmt.Sprintf("%s:%d", d.origin, n.Line)
}

// decode sets v from n. An empty value leaves v unchanged.
func (d *decoder) decode(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.places[path] = d.place(n)
	if n.Line != around {
		d.written[path] = d.place(n)
	}
	if n.Tag == "!!null" {
		return
	}
	switch t := v.Type(); {
	case readsItself(t):
		d.value(n, path, v)
	case t == durationType:
		d.duration(n, path, v)
	case t.Kind() == reflect.Pointer:
		element := reflect.New(t.Elem())
		if !v.IsNil() {
			element.Elem().Set(v.Elem())
		}
		d.decode(n, path, element.Elem())
		v.Set(element)
	case t.Kind() == reflect.Struct:
		d.section(n, path, v)
	case t.Kind() == reflect.Slice:
		d.list(n, path, v)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		d.table(n, path, v)
	default:
		d.value(n, path, v)
	}
}

func (d *decoder) section(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "%s is %s, not a section with keys of its own", shownPath(path), shown(n))
		return
	}
	d.eachPair(n, path, func(key, value *yaml.Node) {
		for f := range fields(v) {
			switch {
			case f.key != key.Value:
				continue
			case f.overlay:
				d.overlay(value, join(path, f.key), v, f.of(v))
			default:
				f.change(v, func(v reflect.Value) { d.decode(value, join(path, f.key), v) })
			}
			return
		}
		if d.removed(key, value, join(path, key.Value)) {
			return
		}
		d.fault(key, "unknown key %s; %s", join(path, key.Value),
			d.suggestion(key.Value, value, path, v))
	})
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "%s is %s, not a list; write [a, b], or a row with a dash for each element",
			path, shown(n))
		return
	}
	for _, places := range []map[string]string{d.places, d.written} {
		maps.DeleteFunc(places, func(earlier, _ string) bool {
			return strings.HasPrefix(earlier, path+"[") // of the list that this one replaces
		})
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, element := range n.Content {
		d.decode(element, fmt.Sprintf("%s[%d]", path, i), list.Index(i))
	}
	v.Set(list)
}

// table sets entries of a map. Other entries stay.
func (d *decoder) table(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "%s is %s, not a table of names and values", path, shown(n))
		return
	}
	table := reflect.MakeMap(v.Type())
	for entry := v.MapRange(); entry.Next(); {
		table.SetMapIndex(entry.Key(), entry.Value())
	}
	d.eachPair(n, path, func(key, value *yaml.Node) {
		name := reflect.ValueOf(key.Value).Convert(v.Type().Key())
		element := reflect.New(v.Type().Elem()).Elem()
		if given := table.MapIndex(name); given.IsValid() {
			element.Set(given)
		}
		d.decode(value, join(path, key.Value), element)
		table.SetMapIndex(name, element)
	})
	v.Set(table)
}

// overlay decodes a map of sections in which each entry inherits what it leaves out from an earlier
// value of the entry, or else from the section that contains the map. It does so after all else is
// decoded.
func (d *decoder) overlay(n *yaml.Node, path string, section, v reflect.Value) {
	if d.final {
		d.fault(n, "%s cannot be nested; "+
			"write it beside the other entries of the table that contains it", path)
		return
	}
	origin := d.origin
	d.overlays = append(d.overlays, func() {
		d.origin = origin
		table := reflect.MakeMap(v.Type())
		for entry := v.MapRange(); entry.Next(); {
			table.SetMapIndex(entry.Key(), entry.Value())
		}
		base := reflect.New(section.Type()).Elem()
		base.Set(section)
		for f := range fields(section) {
			if f.overlay {
				base.FieldByIndex(f.Index).SetZero()
			}
		}
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if name := reflect.ValueOf(n.Content[i].Value); !table.MapIndex(name).IsValid() {
				table.SetMapIndex(name, base)
			}
			d.inherits[join(path, n.Content[i].Value)] = sectionOf(path)
		}
		v.Set(table)
		d.decode(n, path, v)
	})
}

// sectionOf returns the path of the section that contains a key.
func sectionOf(path string) string { return path[:max(strings.LastIndex(path, "."), 0)] }

func (d *decoder) eachPair(n *yaml.Node, path string, do func(key, value *yaml.Node)) {
	seen := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := seen[key.Value]; twice {
			d.fault(key, "%s is set twice, first at %s; remove one", join(path, key.Value),
				d.place(first))
			continue
		}
		seen[key.Value] = key
		do(key, value)
	}
}

func (d *decoder) duration(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "%s is %s, not a duration such as 30s", path, shown(n))
		return
	}
	if n.Tag == "!!int" && n.Value != "0" {
		d.fault(n, "%s: %s has no unit; write %ss or %sms", path, n.Value, n.Value, n.Value)
		return
	}
	duration, err := ParseDuration(n.Value)
	if err != nil {
		d.fault(n, "%s: %w", path, err)
		return
	}
	v.SetInt(int64(duration))
}

func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	err := n.Decode(v.Addr().Interface())
	if err == nil {
		return
	}
	if mismatch := new(yaml.TypeError); errors.As(err, &mismatch) || n.Kind != yaml.ScalarNode {
		d.fault(n, "%s is %s; give %s", path, shown(n), typeName(v.Type()))
		return
	}
	if _, level := v.Interface().(slog.Level); level {
		d.fault(n, "%s is %s; use debug, info, warn or error", path, shown(n))
		return
	}
	d.fault(n, "%s: %w", path, err)
}

// typeName returns a type in words.
func typeName(t reflect.Type) string {
	if t == durationType {
		return "a duration"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer of 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a table"
	case reflect.Pointer:
		return typeName(t.Elem())
	}
	return t.String()
}

func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a table"
	case yaml.SequenceNode:
		return "a list"
	}
	const most = 64
	if len(n.Value) > most {
		return fmt.Sprintf("%.*q…", most, n.Value)
	}
	return fmt.Sprintf("%q", n.Value)
}

func shownPath(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
