package embedded

import (
	"errors"
	"fmt"
	"time"
)

// Config configures the backend embedded, which stores everything in the directory that data names.
type Config struct {
	// ReserveBytes is the space on the data directory's file system that files and results do not
	// use, so that a full disk can be emptied: new lines and uploads stop before it is used, while
	// deletions and changes of batches go on. Half of it is a file that is deleted when other
	// programs have used all the rest. A sixteenth of the file system at most. 0: none. Default:
	// 64 MiB.
	ReserveBytes int64 `yaml:"reserve_bytes"`

	Tuning `yaml:"tuning"`
}

// Tuning holds the constants of the backend embedded.
type Tuning struct {
	// LockWait limits how long a write waits for another process that holds the lock of the
	// database, for example a suspended one. After it, requests are answered 503. At least 100ms.
	// Default: 5s.
	LockWait time.Duration `yaml:"lock_wait"`
}

// DefaultConfig returns the settings for a disk that other programs may fill.
func DefaultConfig() Config {
	return Config{ReserveBytes: 64 << 20, Tuning: Tuning{LockWait: 5 * time.Second}}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	var faults []error
	if c.ReserveBytes < 0 {
		faults = append(faults, fmt.Errorf("reserve_bytes: is %d, must be 0 or more",
			c.ReserveBytes))
	}
	if c.LockWait < 100*time.Millisecond {
		faults = append(faults, fmt.Errorf("tuning.lock_wait: is %v, must be 100ms or more",
			c.LockWait))
	}
	return errors.Join(faults...)
}
