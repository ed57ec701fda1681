package config

import (
	"errors"
	"fmt"
	"strings"
)

// locate puts the origin of the value in front of each fault, found by the path with which the
// fault starts. A fault of a value that an entry inherits is left out, because it is reported where
// the value was written. One that an entry alone has, such as what its policy lacks, gets the place
// of the entry, and one of a key that is missing that of the nearest section that contains it.
func (d *decoder) locate(err error) error {
	all := Faults(err)
	reported := map[string]bool{}
	for _, fault := range all {
		reported[fault.Error()] = true
	}
	var located []error
	for _, fault := range all {
		path, _, _ := strings.Cut(fault.Error(), " ")
		path = strings.TrimSuffix(path, ":")
		place := d.places[path]
		if entry, inherited := d.inheritedBy(fault.Error()); place == "" && entry != "" {
			if reported[inherited] {
				continue
			}
			place = d.places[entry]
		}
		if place == "" {
			place = d.nearest(path)
		}
		if place != "" {
			fault = fmt.Errorf("%s: %w", place, fault)
		}
		located = append(located, fault)
	}
	return errors.Join(located...)
}

// nearest returns the place of the innermost section or list that contains a path and is written
// somewhere; the name of the file, if none is; empty: there is no file either.
func (d *decoder) nearest(path string) string {
	if head, _, _ := strings.Cut(path, "."); !d.hasKey(head) {
		return "" // the fault starts with other words
	}
	for path != "" {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		if place := d.written[path]; place != "" && path != "" {
			return place
		}
	}
	return d.name
}

// hasKey reports whether the configuration has a key, which may be followed by an index.
func (d *decoder) hasKey(name string) bool {
	name, _, _ = strings.Cut(name, "[")
	for f := range fields(d.root) {
		if f.key == name {
			return true
		}
	}
	return false
}

// inheritedBy returns the entry of an overlay that a fault is about, and the text of the same fault
// in the section from which the entry inherits; empty: it is about none.
func (d *decoder) inheritedBy(fault string) (entry, inherited string) {
	for path, from := range d.inherits {
		if rest, is := strings.CutPrefix(fault, path+"."); is && len(path) > len(entry) {
			entry, inherited = path, join(from, rest)
		}
	}
	return entry, inherited
}
