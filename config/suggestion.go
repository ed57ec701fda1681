package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/suggest"
)

// suggestion proposes a key in place of one that the section at path does not have: the same key in
// a block called tuning, a key of the section or of its block that is spelled alike, the same key
// in another section, or any key of the section. value is what was written for the unknown key.
func (d *decoder) suggestion(key string, value *yaml.Node, path string,
	section reflect.Value) string {
	var siblings []string
	for f := range fields(section) {
		siblings = append(siblings, f.key)
	}
	known := keysOf(d.root)
	if moved := withPath(known, join(path, key)); moved != "" {
		return fmt.Sprintf("did you mean %s?", moved)
	}
	if near := suggest.Nearest(key, siblings); near != "" {
		return fmt.Sprintf("did you mean %s?", join(path, near))
	}
	tuning := join(path, "tuning")
	if near := suggest.Nearest(key, namesIn(known, tuning)); near != "" {
		return fmt.Sprintf("did you mean %s?", join(tuning, near))
	}
	if elsewhere := withName(known, key, value, path); elsewhere != "" {
		return fmt.Sprintf("did you mean %s?", elsewhere)
	}
	slices.Sort(siblings)
	return fmt.Sprintf("%s has the keys %s", shownPath(path), strings.Join(siblings, ", "))
}

// namesIn returns the names of the keys of the section at path; none if there is no such section.
func namesIn(known []Key, path string) []string {
	var names []string
	for _, k := range known {
		if name, in := strings.CutPrefix(k.Path, path+"."); in && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// withPath returns the key that has a path but for blocks called tuning, or "".
func withPath(known []Key, path string) string {
	for _, k := range known {
		if withoutTuning(k.Path) == path {
			return k.Path
		}
	}
	return ""
}

// withName returns a key of any section that has the name. If there is none, the name is that of a
// section that was renamed: withName returns the only key below path that has the name of the first
// key within value. It returns "" if no key or several have that name.
func withName(known []Key, name string, value *yaml.Node, path string) string {
	if found := withTail(known, name); len(found) > 0 {
		return found[0]
	}
	below := slices.DeleteFunc(slices.Clone(known), func(k Key) bool {
		return !strings.HasPrefix(k.Path, path+".")
	})
	var names []string
	for value != nil && value.Kind == yaml.MappingNode && len(value.Content) > 0 {
		names = append(names, value.Content[0].Value)
		value = value.Content[1]
	}
	for i := range names {
		if found := withTail(below, strings.Join(names[i:], ".")); len(found) > 0 {
			if len(found) > 1 {
				return ""
			}
			return found[0]
		}
	}
	return ""
}

// withTail returns the keys whose paths end with the names in tail, but for blocks called tuning.
func withTail(known []Key, tail string) []string {
	var found []string
	for _, k := range known {
		if strings.HasSuffix("."+withoutTuning(k.Path), "."+tail) {
			found = append(found, k.Path)
		}
	}
	return found
}

func withoutTuning(path string) string { return strings.ReplaceAll(path, ".tuning.", ".") }
