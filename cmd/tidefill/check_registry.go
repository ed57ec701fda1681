package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

// registryCheck judges the files of the registry among those that are checked. They are judged
// together, as those of a directory are: a name is known in all of them.
type registryCheck struct {
	names    []string
	catalogs *registry.Catalogs
}

// readRegistry finds the files of the registry among YAML files. One that can't be read is left to
// the check of configurations, which reports that.
func readRegistry(names []string) registryCheck {
	var r registryCheck
	var documents []registry.Document
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && !slices.Contains(r.names, name) && !isConfiguration(text) &&
			registry.Recognizes(text) {
			r.names = append(r.names, name)
			documents = append(documents, registry.Document{Name: name, Text: text})
		}
	}
	r.catalogs = r.catalogs.Next(time.Time{}, documents)
	return r
}

// isConfiguration reports whether a text has a key of the daemon's configuration. A manifest of
// Kubernetes is none, though it may have the key data.
func isConfiguration(text []byte) bool {
	documents, _ := strictyaml.Documents(text)
	for _, key := range config.Keys() {
		for _, n := range documents {
			if !strings.ContainsAny(key.Path, ".[<") && hasKey(n, key.Path) && !hasKey(n, "kind") {
				return true
			}
		}
	}
	return false
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// unclear describes a file that is neither a configuration nor a document of the registry, though
// it may be meant as either; empty: it is one of them.
func unclear(text []byte) string {
	documents, fault := strictyaml.Documents(text)
	if fault != nil || len(documents) == 0 || isConfiguration(text) {
		return ""
	}
	note := "has no key of the daemon's configuration, and " + registry.Unrecognized
	if n := documents[0]; hasKey(n, "name") && hasKey(n, "spec") {
		return note + "; a template, a profile or a set of use cases must be an item of a list"
	}
	return note + "; as a configuration, it has these faults:"
}

// registryFinding is what is wrong with a row of a file, or has no effect.
type registryFinding struct {
	Row     int           `json:"row"` // 0: unknown
	Kind    registry.Kind `json:"kind"`
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Path    string        `json:"path"`
	Text    string        `json:"text"`
}

// file prints what is wrong with one of the files.
func (r *registryCheck) file(c *check, name string) (valid bool, err error) {
	templates, warnings := inFile(r.catalogs.Templates(), registry.Templates, name)
	profiles, more := inFile(r.catalogs.Profiles(), registry.Profiles, name)
	warnings = append(warnings, more...)
	useCases, more := inFile(r.catalogs.UseCases(), registry.UseCases, name)
	warnings = append(warnings, more...)
	faults := []registryFinding{}
	for _, f := range r.catalogs.Faults() {
		if f.Document != name {
			continue
		}
		faults = append(faults, registryFinding{f.Row, f.Kind, f.Key.Name, f.Key.Version, f.Path,
			f.Text})
	}
	slices.SortStableFunc(faults, func(a, b registryFinding) int { return a.Row - b.Row })
	valid = len(faults) == 0
	return valid, c.print(c.out, struct {
		File      string            `json:"file"`
		Valid     bool              `json:"valid"`
		Templates int               `json:"templates"`
		Profiles  int               `json:"profiles"`
		UseCases  int               `json:"use_cases"` // sets of them
		Faults    []registryFinding `json:"faults"`
		Warnings  []registryFinding `json:"warnings"`
	}{name, valid, templates, profiles, useCases, faults, warnings}, func(out io.Writer) error {
		for _, f := range faults {
			printf(out, "%s: %s\n", f.place(name), f.text())
		}
		for _, w := range warnings {
			printf(out, "%s: warning: %s %s: %s\n", w.place(name), w.Kind,
				registry.Key{Name: w.Name, Version: w.Version}, w.Text)
		}
		if valid {
			has := humanize.Count(templates, "template") + ", " +
				humanize.Count(profiles, "profile")
			if useCases > 0 {
				has += ", " + humanize.Count(useCases, "use case set")
			}
			if pools, _ := inFile(r.catalogs.Pools(), registry.Pools, name); pools > 0 {
				has += ", " + humanize.Count(pools, "pool")
			}
			printf(out, "%s is valid: %s.\n", name, has)
		}
		return nil
	})
}

// inFile counts the items of a file, and lists their warnings.
func inFile[T registry.Item[T]](
	entries []registry.Entry[T], kind registry.Kind, name string,
) (items int, warnings []registryFinding) {
	warnings = []registryFinding{}
	for _, e := range entries {
		if e.Document != name {
			continue
		}
		items++
		for _, text := range e.Warnings {
			k := e.Item.Key()
			warnings = append(warnings, registryFinding{e.Row, kind, k.Name, k.Version, "", text})
		}
	}
	return items, warnings
}

func (f *registryFinding) place(name string) string {
	if f.Row > 0 {
		return fmt.Sprintf("%s:%d", name, f.Row)
	}
	return name
}

// text names the field or, if none alone is wrong, the item.
func (f *registryFinding) text() string {
	switch {
	case f.Path != "":
		return f.Path + ": " + f.Text
	case f.Name != "":
		return fmt.Sprintf("%s %s: %s", f.Kind, registry.Key{Name: f.Name, Version: f.Version},
			f.Text)
	}
	return f.Text
}
