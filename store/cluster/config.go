package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/store/postgres"
)

// Config configures the backend cluster, which stores records in PostgreSQL, and files and results
// in the directory that data names. All processes must mount it, with a file system whose fsync and
// flock hold between machines, such as CephFS or GPFS.
type Config struct {
	// Metadata is the PostgreSQL database that holds batches, claims and progress.
	Metadata postgres.Config `yaml:"metadata"`
	// ReserveBytes is the space on the shared file system that files and results do not use. A
	// sixteenth of the file system at most. 0: none. Default: 64 MiB.
	ReserveBytes int64 `yaml:"reserve_bytes"`
}

// DefaultConfig returns the settings without the address of a database.
func DefaultConfig() Config {
	return Config{Metadata: postgres.DefaultConfig(), ReserveBytes: 64 << 20}
}

// Validate reports every value that is missing or out of range.
func (c Config) Validate() error {
	var faults []error
	if err := c.Metadata.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			faults = append(faults, errors.New("metadata."+line))
		}
	}
	if c.ReserveBytes < 0 {
		faults = append(faults, fmt.Errorf("reserve_bytes: is %d, must be 0 or more",
			c.ReserveBytes))
	}
	return errors.Join(faults...)
}
