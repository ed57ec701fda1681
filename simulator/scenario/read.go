package scenario

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Files is how scenarios are read, since nothing in the simulator touches a disk.
type Files struct {
	// Read brings the content of a file.
	Read func(file string) ([]byte, error)
	// Lay lays it over a scenario and checks the whole, by the rules of all files of ours.
	Merge func(file string, content []byte, s *Scenario) error
}

// mostBases is how many scenarios one may be based on, one behind the other; more are a circle.
const maxBases = 8

// Read reads a scenario, laid over those it is based on.
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
	return s, files.Merge(file, content, &s)
}

// baseOf reads one key; whatever is wrong with the file is told by who reads the whole.
func baseOf(content []byte) string {
	var head struct {
		Base string `yaml:"base"`
	}
	if err := yaml.Unmarshal(content, &head); err != nil && !errors.As(err, new(*yaml.TypeError)) {
		return ""
	}
	return head.Base
}

// Beside is a path as a scenario means it, from its own folder.
func ResolvePath(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
