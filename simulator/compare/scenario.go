package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Scenario is a scenario file with all the files it names. The policy and the seed of its Setup are
// open.
type Scenario struct {
	simulator.Setup
	File string
	// Name is for names of files, unique among the scenarios that are opened together.
	Name string
	// Fitted is the profile of the first pool, with its errors.
	Fitted profile.File
	// Hashes are those of the traffic's files.
	Hashes []string
}

// Trace is a file of interactive traffic that replaces the traffic of every scenario. Its zero
// value replaces nothing.
type Trace struct {
	File   string
	Format workload.Format
}

// OpenScenarios reads scenario files, and those that their goals compare with. A file that is named
// twice is read once. The error has the errors of all files.
func OpenScenarios(files []string, traffic Trace) ([]Scenario, error) {
	files = slices.Clone(files)
	var all []Scenario
	var errs []error
	opened, names := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(files); i++ {
		file := filepath.Clean(files[i])
		if opened[file] {
			continue
		}
		opened[file] = true
		s, err := openScenario(file, traffic)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for n, base := 2, s.Name; names[s.Name]; n++ {
			s.Name = fmt.Sprintf("%s-%d", base, n)
		}
		names[s.Name] = true
		all = append(all, s)
		if other := s.Scenario.Goals.ComparedWith.Scenario; other != "" {
			files = append(files, scenario.ResolvePath(file, other))
		}
	}
	return all, errors.Join(errs...)
}

func openScenario(file string, traffic Trace) (Scenario, error) {
	s := Scenario{File: file, Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	var err error
	s.Scenario, err = scenario.Read(file, scenario.Files{
		Read: os.ReadFile,
		Merge: func(file string, content []byte, s *scenario.Scenario) error {
			return config.Read(file, content, s)
		},
	})
	if err != nil {
		return Scenario{}, err
	}
	if traffic.File != "" {
		absolute, err := filepath.Abs(traffic.File)
		if err != nil {
			return Scenario{}, err
		}
		in := &s.Scenario.Interactive
		in.Generator, in.Trace, in.Format = "", absolute, traffic.Format
	}
	for _, part := range []struct {
		key  string
		read func() error
	}{{"pool.profile", s.readProfile}, {"batch_pools", s.readProfiles},
		{"interactive.trace", s.readTrace}, {"interactive.shape", s.readShape}} {
		if err := part.read(); err != nil {
			return Scenario{}, fmt.Errorf("%s: %s: %w", file, part.key, err)
		}
	}
	if traffic.File != "" {
		s.Setup = s.WithTraffic()
	}
	if err := s.Check(); err != nil {
		return Scenario{}, s.locate(err)
	}
	return s, nil
}

// checked is a scenario whose problem is known.
type checked struct {
	scenario.Scenario `yaml:",inline"`

	problem error
}

// Validate returns the problem.
func (c checked) Validate() error { return c.problem }

// locate puts the place in the file, or the file alone, before each problem of the setup.
func (s *Scenario) locate(problem error) error {
	content, err := os.ReadFile(s.File)
	if err != nil {
		return err
	}
	var all []error
	for _, p := range config.Faults(config.Read(s.File, content, &checked{s.Scenario, problem})) {
		if !strings.HasPrefix(p.Error(), s.File+":") {
			p = fmt.Errorf("%s: %w", s.File, p)
		}
		all = append(all, p)
	}
	return errors.Join(all...)
}

func (s *Scenario) readProfile() (err error) {
	if s.Fitted, err = s.openProfile(s.Scenario.Pool.Profile); err != nil {
		return err
	}
	s.Profile, err = s.Fitted.Profile()
	return err
}

func (s *Scenario) readProfiles() error {
	for _, pool := range s.Scenario.BatchPools {
		if pool.Profile == "" {
			continue
		}
		f, err := s.openProfile(pool.Profile)
		if err != nil {
			return fmt.Errorf("%s: %w", pool.Name, err)
		}
		p, err := f.Profile()
		if err != nil {
			return fmt.Errorf("%s: %w", pool.Name, err)
		}
		if s.Profiles == nil {
			s.Profiles = map[string]engine.Profile{}
		}
		s.Profiles[pool.Profile] = p
	}
	return nil
}

// openProfile returns a bundled profile, or reads a file in the scenario's directory.
func (s *Scenario) openProfile(name string) (profile.File, error) {
	if _, bundled := engine.ProfileNamed(name); !bundled {
		name = scenario.ResolvePath(s.File, name)
	}
	return OpenProfile(name)
}

func (s *Scenario) readTrace() (err error) {
	in := s.Scenario.Interactive
	if in.Trace == "" {
		return nil
	}
	s.Trace, err = readResolved(s, in.Trace, func(r io.Reader) (*workload.Trace, error) {
		return workload.Read(in.Trace, in.Format, r)
	})
	return err
}

func (s *Scenario) readShape() (err error) {
	name, file := s.Scenario.Interactive.ShapeFile()
	if !file {
		return nil
	}
	s.Shape, err = readResolved(s, name, func(r io.Reader) (*workload.Curve, error) {
		return workload.ReadCurve(name, r, s.Scenario.Interactive.ShapeColumn)
	})
	return err
}

// readResolved reads a file in the scenario's directory and records its hash.
func readResolved[T any](s *Scenario, name string, read func(io.Reader) (T, error)) (T, error) {
	in, err := os.Open(scenario.ResolvePath(s.File, name))
	if err != nil {
		var none T
		return none, err
	}
	defer in.Close()
	hash := sha256.New()
	content, err := read(io.TeeReader(in, hash))
	if err == nil {
		_, err = io.Copy(hash, in) // what the reader did not need
	}
	s.Hashes = append(s.Hashes, hex.EncodeToString(hash.Sum(nil)))
	return content, err
}

// With returns the setup of one run.
func (s *Scenario) With(seed uint64, policy simulator.Policy) simulator.Setup {
	setup := s.Setup
	setup.Seed, setup.Policy = seed, policy
	return setup
}
