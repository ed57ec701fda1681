package config

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// removedText has a row for each key of release 0.1.0 that is no key any more: its path, with []
// for the elements of a list, and what applies in its place.
//
//go:embed removed.txt
var removedText string

// removed holds the rows of removedText by path.
var removed = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for row := range strings.Lines(removedText) {
		path, value, _ := strings.Cut(strings.TrimSpace(row), ": ")
		all[path] = value
	}
	return all
})

var (
	listIndex = regexp.MustCompile(`\[\d+\]`)
	// settingsOf matches where a pool or a shadow has flowcontrol's keys.
	settingsOf = regexp.MustCompile(`^flowcontrol\.(pools\.[^.]+\.)?(shadow\.)?`)
)

// removed reports the keys at path, or below it, that are no keys any more. It returns false if it
// knows none of them, and reports nothing then.
func (d *decoder) removed(key, value *yaml.Node, path string) bool {
	known := settingsOf.ReplaceAllString(listIndex.ReplaceAllString(path, "[]"), "flowcontrol.")
	if instead, gone := removed()[known]; gone {
		d.fault(key, "%s is no key any more: it is %s; remove it", path, instead)
		return true
	}
	found := false
	for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
		inner := value.Content[i]
		found = d.removed(inner, value.Content[i+1], join(path, inner.Value)) || found
	}
	return found
}
