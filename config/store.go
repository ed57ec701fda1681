package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/embedded"
)

// Store configures the store of files, batches and results.
type Store struct {
	// Backend selects where everything is stored. embedded: in the directory that data names, for
	// one machine. Default: embedded.
	Backend string `yaml:"backend"`
	// ReserveBytes is the space on the data directory's file system that files and results do not
	// use, so that a full disk can be emptied: new lines and uploads stop before it is used, while
	// deletions and changes of batches go on. Half of it is a file that is deleted when other
	// programs have used all the rest. A sixteenth of the file system at most. 0: none. Default:
	// 64 MiB.
	ReserveBytes int64 `yaml:"reserve_bytes"`

	StoreTuning `yaml:"tuning"`
}

// StoreTuning holds the constants of the store.
type StoreTuning struct {
	// LockWait limits how long a write waits for another process that holds the lock of the
	// database, for example a suspended one. After it, requests are answered 503. At least 100ms.
	// Default: 5s.
	LockWait time.Duration `yaml:"lock_wait"`
}

// defaultStore returns the settings for a disk that other programs may fill.
func defaultStore() Store {
	return Store{Backend: embedded.Name, ReserveBytes: 64 << 20,
		StoreTuning: StoreTuning{LockWait: 5 * time.Second}}
}

// Validate reports every value that is out of range.
func (s Store) Validate() error {
	var faults []error
	if _, err := store.FindBackend(s.Backend); err != nil {
		faults = append(faults, fmt.Errorf("backend: %w", err))
	}
	if s.ReserveBytes < 0 {
		faults = append(faults, fmt.Errorf("reserve_bytes: is %d, must be 0 or more",
			s.ReserveBytes))
	}
	if s.LockWait < 100*time.Millisecond {
		faults = append(faults, fmt.Errorf("tuning.lock_wait: is %v, must be 100ms or more",
			s.LockWait))
	}
	return errors.Join(faults...)
}
