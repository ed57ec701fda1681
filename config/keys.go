package config

import (
	"encoding"
	"iter"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Key is one thing that can be configured.
type Key struct {
	// such as flowcontrol.fixed.per_runner; list elements show as [], map values as <name>
	Path    string
	Type    reflect.Type
	Default reflect.Value // invalid within lists and maps, whose elements have none
	// Struct and Field are where the key is defined, for its doc comment.
	Struct reflect.Type
	Field  string
}

// Tuning reports whether the key is a constant that an operator has no reason to set: it is in a
// block called tuning.
func (k Key) Tuning() bool {
	return k.Path == "tuning" || strings.HasPrefix(k.Path, "tuning.") ||
		strings.HasSuffix(k.Path, ".tuning") || strings.Contains(k.Path, ".tuning.")
}

// Keys lists every key with its default, sections before what they hold.
func Keys() []Key { return keysOf(reflect.TypeFor[Config](), reflect.ValueOf(Default())) }

// SimulationKeys lists the keys of Simulation that the daemon does not have.
func SimulationKeys() []Key {
	var own []Key
	for _, k := range keysOf(reflect.TypeFor[Simulation](), reflect.ValueOf(DefaultSimulation())) {
		end := strings.IndexAny(k.Path+".", ".[")
		if !hasKey[Config](k.Path[:end]) {
			own = append(own, k)
		}
	}
	return own
}

// hasKey reports whether a section has a key of its own of that name.
func hasKey[Section any](key string) bool {
	for f := range fields(reflect.TypeFor[Section]()) {
		if f.key == key {
			return true
		}
	}
	return false
}

func keysOf(root reflect.Type, defaults reflect.Value) []Key {
	var keys []Key
	var walk func(prefix string, t reflect.Type, v reflect.Value)
	walk = func(prefix string, t reflect.Type, v reflect.Value) {
		for f := range fields(t) {
			key := Key{Path: join(prefix, f.key), Type: f.Type, Struct: f.owner, Field: f.Name}
			if v.IsValid() {
				key.Default = v.FieldByIndex(f.Index)
			}
			keys = append(keys, key)
			switch element, path := f.Type, key.Path; {
			case f.overlay: // its keys are its section's
			case IsSection(element):
				walk(path, element, key.Default)
			case element.Kind() == reflect.Slice && IsSection(element.Elem()):
				walk(path+"[]", element.Elem(), reflect.Value{})
			case element.Kind() == reflect.Map && IsSection(element.Elem()):
				walk(path+".<name>", element.Elem(), reflect.Value{})
			}
		}
	}
	walk("", root, defaults)
	return keys
}

// field is a struct field that the file can set.
type field struct {
	reflect.StructField // Index counts from the struct that was asked about, through inlined ones
	key                 string
	owner               reflect.Type
	// tagged config:"overlay": a table of sections like the one that it is in, each laid over that
	overlay bool
}

// fields yields what a section's struct holds, inlined structs' fields in place.
func fields(t reflect.Type) iter.Seq[field] {
	return func(yield func(field) bool) {
		for f := range structFields(t, t, nil) {
			if !yield(f) {
				return
			}
		}
	}
}

func structFields(root, t reflect.Type, index []int) iter.Seq[field] {
	return func(yield func(field) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "-" || !f.IsExported() {
				continue
			}
			f.Index = append(index[:len(index):len(index)], i)
			if options == "inline" {
				for inlined := range structFields(root, f.Type, f.Index) {
					if !yield(inlined) {
						return
					}
				}
				continue
			}
			if key == "" {
				key = strings.ToLower(f.Name)
			}
			if !yield(field{StructField: f, key: key, owner: t, overlay: f.Tag.Get(
				"config") == "overlay"}) {
				return
			}
		}
	}
}

var (
	durationType        = reflect.TypeFor[time.Duration]()
	yamlUnmarshalerType = reflect.TypeFor[yaml.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself tells types that have their own way of being written.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(yamlUnmarshalerType) || p.Implements(textUnmarshalerType)
}

// IsSection tells a struct of keys from a value.
func IsSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && !readsItself(t) }

// IsText tells types that are written as one word, whatever they are in Go.
func IsText(t reflect.Type) bool { return readsItself(t) }

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
