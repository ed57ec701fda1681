package embedded

import "fmt"

// Config configures the backend embedded, which stores everything in the directory that data names.
type Config struct {
	// ReserveBytes is the space on the data directory's file system that files and results do not
	// use, so that a full disk can be emptied: new lines and uploads stop before it is used, while
	// deletions and changes of batches go on. Half of it is a file that is deleted when other
	// programs have used all the rest. A sixteenth of the file system at most. 0: none. Default:
	// 64 MiB.
	ReserveBytes int64 `yaml:"reserve_bytes"`
}

// DefaultConfig returns the settings for a disk that other programs may fill.
func DefaultConfig() Config {
	return Config{ReserveBytes: 64 << 20}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	if c.ReserveBytes < 0 {
		return fmt.Errorf("reserve_bytes: is %d, must be 0 or more", c.ReserveBytes)
	}
	return nil
}
