package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/redis"
	"github.com/tidefill/tidefill/store/s3"
	"github.com/tidefill/tidefill/store/segments"
)

// Config configures the backend cluster, which stores records in PostgreSQL, and files and results
// in a bucket, or without one in the directory that data names. All processes must mount that
// directory then, with a file system whose fsync and flock hold between machines, such as CephFS or
// GPFS. With a bucket it holds temporary files alone.
type Config struct {
	// Metadata is the PostgreSQL database that holds batches, claims and progress.
	Metadata postgres.Config `yaml:"metadata"`
	// Objects is the bucket that holds files and results. With an empty bucket, the directory data
	// holds them.
	Objects s3.Config `yaml:"objects"`
	// Live is the connection to Redis, by which processes notice each other's changes at once and
	// show what the others know; see docs/redis.md. Without a URL they ask the database.
	Live redis.Config `yaml:"live"`
	// ReserveBytes is the space on the file system of data that Tidefill does not use. A sixteenth
	// of the file system at most. 0: none. Default: 64 MiB.
	ReserveBytes int64 `yaml:"reserve_bytes"`
}

// DefaultConfig returns the settings without the address of a database.
func DefaultConfig() Config {
	return Config{Metadata: postgres.DefaultConfig(), Objects: s3.DefaultConfig(),
		Live: redis.DefaultConfig(), ReserveBytes: 64 << 20}
}

// MemoryBytes returns the most that caches and buffers for a bucket take. Without a limit of the
// collector above them, it would run all the time.
func (c Config) MemoryBytes() int64 {
	if c.Objects.Bucket == "" {
		return 0
	}
	return c.Objects.WriteBytes + c.Objects.ReadBytes + segments.DefaultMemory
}

// Validate reports every value that is missing or out of range.
func (c Config) Validate() error {
	faults := within("metadata", c.Metadata.Validate())
	if c.Objects.Bucket != "" {
		faults = append(faults, within("objects", c.Objects.Validate())...)
	}
	faults = append(faults, within("live", c.Live.Validate())...)
	if c.ReserveBytes < 0 {
		faults = append(faults, fmt.Errorf("reserve_bytes: is %d, must be 0 or more",
			c.ReserveBytes))
	}
	return errors.Join(faults...)
}

// HoldsObjects reports whether objects of the store may be below a prefix of a bucket.
func (c Config) HoldsObjects(endpoint, bucket, prefix string) bool {
	own := c.Objects.Prefix + "/"
	return bucket == c.Objects.Bucket &&
		strings.TrimRight(endpoint, "/") == strings.TrimRight(c.Objects.Endpoint, "/") &&
		(strings.HasPrefix(own, prefix) || strings.HasPrefix(prefix, own))
}

// CheckFiles reads the files that the configuration names, and reports every fault with the path of
// its field. It sends nothing and reads no environment variable.
func (c Config) CheckFiles() error {
	faults := within("metadata", c.Metadata.CheckFiles())
	if c.Objects.Bucket != "" {
		faults = append(faults, within("objects", c.Objects.CheckFiles())...)
	}
	return errors.Join(append(faults, within("live", c.Live.CheckFiles())...)...)
}

// within returns the faults of a section with its name before the path of each.
func within(section string, err error) (faults []error) {
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		faults = append(faults, errors.New(section+"."+line))
	}
	return faults
}
