package scenario

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Files reads scenarios for the package, since nothing in the simulator touches a disk.
type Files struct {
	// Read returns the content of a file.
	Read func(file string) ([]byte, error)
	// Merge decodes the content over a scenario and validates the result.
	Merge func(file string, content []byte, s *Scenario) error
}

// maxBases is how many scenarios one may be based on in a chain; more are a cycle.
const maxBases = 8

// Read reads a scenario and those it is based on.
func Read(file string, files Files) (Scenario, error) { return read(file, files, maxBases) }

func read(file string, files Files, bases int) (Scenario, error) {
	content, err := files.Read(file)
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	s := Default()
	if base := baseOf(content); base != "" {
		if bases == 0 {
			return Scenario{}, fmt.Errorf(
				"%s: base: more than %d scenarios are based on one another; is it a circle?", file,
				maxBases)
		}
		if s, err = read(ResolvePath(file, base), files, bases-1); err != nil {
			return Scenario{}, fmt.Errorf("base of %s: %w", file, err)
		}
		// What a scenario shows is its own.
		s.Name, s.About = "", ""
	}
	err = files.Merge(file, content, &s)
	return s, err
}

// baseOf reads one key. Errors in the file are reported when all of it is read.
func baseOf(content []byte) string {
	var head struct {
		Base string `yaml:"base"`
	}
	if err := yaml.Unmarshal(content, &head); err != nil && !errors.As(err, new(*yaml.TypeError)) {
		return ""
	}
	return head.Base
}

// ResolvePath returns a path that a scenario names, relative to the scenario's folder.
func ResolvePath(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
