package config

import (
	"encoding"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Key is one key of the configuration.
type Key struct {
	// Path is such as flowcontrol.fixed.per_runner, with [] for the elements of a list and <name>
	// for the names of a map.
	Path    string
	Type    reflect.Type
	Default reflect.Value // not valid within lists and maps, whose elements have no defaults
	// Struct and Field identify the struct field of the key, for its doc comment.
	Struct reflect.Type
	Field  string
	// Policy is set for the settings of a flow-control policy, which apply only while that policy
	// is selected, and for those of a shadow.
	Policy bool
}

// Tuning reports whether the key is a constant that an operator has no reason to set: it is in a
// block called tuning.
func (k Key) Tuning() bool {
	return k.Path == "tuning" || strings.HasPrefix(k.Path, "tuning.") ||
		strings.HasSuffix(k.Path, ".tuning") || strings.Contains(k.Path, ".tuning.")
}

// Keys returns all keys with their defaults; a section is followed by its keys.
func Keys() []Key { return keysOf(reflect.ValueOf(Default())) }

func keysOf(defaults reflect.Value) []Key {
	var keys []Key
	// Elements of lists and maps have no defaults; a zero value has their keys.
	var walk func(prefix string, v reflect.Value, defaults, policy bool)
	walk = func(prefix string, v reflect.Value, defaults, policy bool) {
		for f := range fields(v) {
			if f.unlisted {
				continue
			}
			value := f.of(v)
			policy := policy || f.Tag.Get("config") == "policy" || f.entry &&
				v.FieldByIndex(f.Index).Type() == reflect.TypeFor[flowcontrol.Settings]()
			key := Key{Path: join(prefix, f.key), Type: f.Type, Struct: f.owner, Field: f.Name,
				Policy: policy}
			if defaults {
				key.Default = value
			}
			keys = append(keys, key)
			switch element, path := f.Type, key.Path; {
			case f.overlay: // its keys are its section's
			case IsSection(element):
				walk(path, value, defaults, key.Policy)
			case element.Kind() == reflect.Slice && IsSection(element.Elem()):
				walk(path+"[]", reflect.Zero(element.Elem()), false, key.Policy)
			case element.Kind() == reflect.Map && IsSection(element.Elem()):
				walk(path+".<name>", reflect.Zero(element.Elem()), false, key.Policy)
			}
		}
	}
	walk("", defaults, true, false)
	return keys
}

// field is one key of a section: a field of the section's struct, or an entry of a map of sections
// that the struct inlines.
type field struct {
	reflect.StructField // Index starts at the section's struct and passes through inlined structs
	key                 string
	owner               reflect.Type // the struct that declares the field; nil for a map's entry
	// overlay is set for a field tagged config:"overlay": a map of sections of the same type as the
	// section that contains it, from which they inherit
	overlay bool
	// entry is set for an entry of the map at Index. The map's values are interfaces that hold
	// structs.
	entry bool
	// unlisted is set for an entry of a map tagged config:"unlisted", whose keys are those of
	// another section
	unlisted bool
}

// of returns the field's value in a section.
func (f field) of(section reflect.Value) reflect.Value {
	v := section.FieldByIndex(f.Index)
	if f.entry {
		return v.MapIndex(reflect.ValueOf(f.key).Convert(v.Type().Key())).Elem()
	}
	return v
}

// change calls do to change the field's value in an addressable section. A map of sections is
// replaced by a copy, since copies of the section share it.
func (f field) change(section reflect.Value, do func(reflect.Value)) {
	v := section.FieldByIndex(f.Index)
	if !f.entry {
		do(v)
		return
	}
	own := reflect.New(f.Type).Elem()
	own.Set(f.of(section))
	do(own)
	all := reflect.MakeMap(v.Type())
	for entry := v.MapRange(); entry.Next(); {
		all.SetMapIndex(entry.Key(), entry.Value())
	}
	all.SetMapIndex(reflect.ValueOf(f.key).Convert(v.Type().Key()), own)
	v.Set(all)
}

// fields yields the keys of a section: the fields of its struct, with the fields of inlined structs
// and the entries of inlined maps in place. Only entries that an inlined map has already can be
// configured: they are the defaults of registered implementations.
func fields(section reflect.Value) iter.Seq[field] {
	return func(yield func(field) bool) {
		for f := range structFields(section, nil) {
			if !yield(f) {
				return
			}
		}
	}
}

func structFields(v reflect.Value, index []int) iter.Seq[field] {
	return func(yield func(field) bool) {
		t := v.Type()
		for i := range t.NumField() {
			f := t.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "-" || !f.IsExported() {
				continue
			}
			f.Index = append(slices.Clip(index), i)
			if options == "inline" {
				inlined := structFields
				if f.Type.Kind() == reflect.Map {
					inlined = mapEntries
				}
				for inner := range inlined(v.Field(i), f.Index) {
					inner.unlisted = inner.unlisted || f.Tag.Get("config") == "unlisted"
					if !yield(inner) {
						return
					}
				}
				continue
			}
			if key == "" {
				key = strings.ToLower(f.Name)
			}
			overlay := f.Tag.Get("config") == "overlay"
			if !yield(field{StructField: f, key: key, owner: t, overlay: overlay}) {
				return
			}
		}
	}
}

// mapEntries yields the entries of an inlined map, in the order of their keys.
func mapEntries(v reflect.Value, index []int) iter.Seq[field] {
	return func(yield func(field) bool) {
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		})
		for _, name := range names {
			own := reflect.StructField{Type: v.MapIndex(name).Elem().Type(), Index: index}
			if !yield(field{StructField: own, key: name.String(), entry: true}) {
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

// readsItself reports whether a type decodes itself.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(yamlUnmarshalerType) || p.Implements(textUnmarshalerType)
}

// IsSection reports whether a type is a section with keys, rather than a value.
func IsSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && !readsItself(t) }

// IsText reports whether a type is written as text, whatever it is in Go.
func IsText(t reflect.Type) bool { return readsItself(t) }

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
