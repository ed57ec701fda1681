package config

import (
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"go.yaml.in/yaml/v3"
)

// File is a configuration file with the settings that change what it says.
type File struct {
	// Path is the file's. Empty: there is none, and only Settings change the defaults.
	Path     string
	Settings []Setting

	// last is the decoder of the version that was loaded last. A read that blocks may end late, so
	// that two are under way.
	last atomic.Pointer[decoder]
}

// Load returns the configuration, as the function Load does.
func (f *File) Load() (Config, error) {
	if f.Path == "" {
		return f.parse(nil)
	}
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return f.parse(content)
}

// Reload returns the configuration, as the function Reload does.
func (f *File) Reload() (Config, error) {
	if f.Path == "" {
		return f.parse(nil)
	}
	if err := CheckRegular(f.Path); err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	var keys map[string]any
	if yaml.Unmarshal(content, &keys) == nil && len(keys) == 0 {
		return Config{}, fmt.Errorf("%s has no key; to run with all defaults, restart the daemon",
			f.Path)
	}
	return f.parse(content)
}

func (f *File) parse(content []byte) (Config, error) {
	cfg := Default()
	d := newDecoder(f.Path, &cfg)
	err := d.read(content, func() error { return cfg.Validate() }, f.Settings)
	f.last.Store(d)
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Locate puts the place in the file in front of each fault that starts with the path of a key. The
// faults are those of the configuration that was loaded last, found by others than this package.
func (f *File) Locate(err error) error {
	if d := f.last.Load(); d != nil && err != nil {
		return d.locate(err)
	}
	return err
}

// CheckRegular refuses a path at which, after following links, there is no regular file. To read a
// pipe blocks until someone writes it, and each row of it can be read once only.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var kind string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	default:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s; put a regular file there", path, kind)
}
