// Package kube reads the documents of a registry from ConfigMaps, as AIBrix keeps templates and
// profiles. A ConfigMap may have use cases too.
package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/registry"
)

// ConfigMap is a ConfigMap that is kept current.
type ConfigMap interface {
	// Read returns the entries by key; nil: it has none, or does not exist. The error says why they
	// may be old. Before listed is true they are not known, and the error is not nil.
	Read() (entries map[string]string, listed bool, err error)
}

// Source reads the documents of one ConfigMap. Its methods are called by one goroutine.
type Source struct {
	name      string
	kind      registry.Kind // of which it must have an entry
	configMap ConfigMap

	last map[string]string
	read bool // at least once
}

// New returns the source of a ConfigMap of the configuration.
func New(cfg Config, name string, m ConfigMap) *Source {
	return &Source{name: fmt.Sprintf("configmap %s/%s", cfg.Namespace, name), kind: cfg.kind(name),
		configMap: m}
}

// String returns the ConfigMap, such as configmap aibrix-system/aibrix-batch-profiles.
func (s *Source) String() string { return s.name }

// Read returns the documents if they have changed since the last call, and reports that as changed;
// the first call that succeeds does. A ConfigMap that does not exist has none. The error says why
// the API server can't be asked now. What it said last comes before the error.
func (s *Source) Read() (documents []registry.Document, changed bool, err error) {
	entries, listed, err := s.configMap.Read()
	if !listed {
		return nil, false, err
	}
	if s.read && maps.Equal(entries, s.last) {
		return nil, false, err
	}
	s.last, s.read = entries, true
	return s.documents(entries), true, nil
}

// documents returns the entries that hold items. Without any, there is a document that says so and
// stands for the one that is missing, so that its items stay in force: its key may have a typo.
func (s *Source) documents(entries map[string]string) (all []registry.Document) {
	for _, kind := range registry.DataKinds {
		if text, has := entries[kind.DataKey()]; has {
			all = append(all, registry.Document{Name: s.name + " " + kind.DataKey(), Kind: kind,
				Text: []byte(text)})
		}
	}
	if len(all) == 0 && len(entries) > 0 {
		key := s.kind.DataKey()
		all = append(all, registry.Document{Name: s.name + " " + key, Kind: s.kind,
			Err: fmt.Errorf("does not exist, only %s; name the entry %s, or delete the ConfigMap",
				strings.Join(slices.Sorted(maps.Keys(entries)), ", "), key)})
	}
	return all
}
