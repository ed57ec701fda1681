package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tidefill/tidefill/store"
	_ "github.com/tidefill/tidefill/store/cluster" // registers itself
	"github.com/tidefill/tidefill/store/embedded"
)

// Store configures the store of files, batches and results.
type Store struct {
	// Backend selects where everything is stored. embedded: in the directory that data names, for
	// one machine. cluster: in PostgreSQL and a bucket, for several. Default: embedded.
	Backend string `yaml:"backend"`
	// Settings are the backends' own configurations, each in a section of the backend's name.
	Settings store.BackendSettings `yaml:",inline"`
}

func defaultStore() Store {
	return Store{Backend: embedded.Name, Settings: store.DefaultBackendSettings()}
}

// Validate reports every value that is out of range.
func (s Store) Validate() error {
	var faults []error
	if _, err := store.FindBackend(s.Backend); err != nil {
		faults = append(faults, fmt.Errorf("backend: %w", err))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if name != s.Backend && isDefault(name, s.Settings[name]) {
			continue // such as an address that only its user must set
		}
		faults = append(faults, section(name, s.Settings[name].Validate()))
	}
	return errors.Join(faults...)
}

// MemoryBytes returns the most that the selected backend keeps in memory beyond what the embedded
// one does.
func (s Store) MemoryBytes() int64 {
	if holder, ok := s.Settings[s.Backend].(store.MemoryHolder); ok {
		return holder.MemoryBytes()
	}
	return 0
}

// isDefault reports whether a backend has its default settings.
func isDefault(name string, settings store.BackendConfig) bool {
	backend, err := store.FindBackend(name)
	return err == nil && reflect.DeepEqual(backend.Default, settings)
}
