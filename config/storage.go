package config

import (
	"errors"
	"fmt"
	"time"
)

// Storage is how the data directory is used.
type Storage struct {
	// ReserveBytes is the room on the data directory's file system that files and results don't
	// get, so that a full disk can be emptied: new lines and uploads stop before it is touched,
	// while deletions and changes of batches go on. Half of it is a file that is given up when
	// other programs have taken all the rest. A sixteenth of the file system at most. Default 64
	// MiB; 0: none.
	ReserveBytes int64 `yaml:"reserve_bytes"`
	// LockWait is how long a write waits for another process that holds the lock of the database, a
	// frozen one say. Requests that waited in vain are answered 503. Default 5 seconds.
	LockWait time.Duration `yaml:"lock_wait"`
}

// DefaultStorage returns the settings for a disk that others may fill.
func DefaultStorage() Storage { return Storage{ReserveBytes: 64 << 20, LockWait: 5 * time.Second} }

// Validate reports every field that can't be used.
func (s Storage) Validate() error {
	var faults []error
	if s.ReserveBytes < 0 {
		faults = append(faults, fmt.Errorf("reserve_bytes is %d; set it to 0 or more",
			s.ReserveBytes))
	}
	if s.LockWait < 100*time.Millisecond {
		faults = append(faults, fmt.Errorf("lock_wait is %v; set it to 100ms or more", s.LockWait))
	}
	return errors.Join(faults...)
}
