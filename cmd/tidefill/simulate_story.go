package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// story is a scenario with its files read; who acts in it, and on which day, is still open.
type story struct {
	simulator.Setup
	file    string
	profile profile.File
	read    []string // hashes of the traffic's files
}

// recording is interactive traffic that takes the place of every scenario's own.
type recording struct {
	file   string
	format workload.Format
}

// openStories reads all scenarios, and those that their goals compare with, before the first is
// run. It tells the faults of all.
func openStories(files []string, traffic recording) ([]story, error) {
	files = slices.Clone(files)
	var stories []story
	var faults []error
	opened := map[string]bool{}
	for i := 0; i < len(files); i++ {
		file := filepath.Clean(files[i])
		if opened[file] {
			continue
		}
		opened[file] = true
		s, err := openStory(file, traffic)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		stories = append(stories, s)
		if beside := s.Scenario.Goals.ComparedWith.Scenario; beside != "" {
			files = append(files, scenario.ResolvePath(file, beside))
		}
	}
	return stories, errors.Join(faults...)
}

func openStory(file string, traffic recording) (story, error) {
	s := story{file: file}
	var err error
	s.Scenario, err = scenario.Read(file, scenario.Files{
		Read: os.ReadFile,
		Merge: func(file string, content []byte, s *scenario.Scenario) error {
			return config.Read(file, content, s)
		},
	})
	if err != nil {
		return story{}, err
	}
	if traffic.file != "" {
		absolute, err := filepath.Abs(traffic.file)
		if err != nil {
			return story{}, err
		}
		in := &s.Scenario.Interactive
		in.Generator, in.Trace, in.Format = "", absolute, traffic.format
	}
	for _, read := range []struct {
		key string
		do  func() error
	}{{"pool.profile", s.readProfile}, {"batch_pools", s.readProfiles},
		{"interactive.trace", s.readTrace}, {"interactive.shape", s.readShape}} {
		if err := read.do(); err != nil {
			return story{}, fmt.Errorf("%s: %s: %w", file, read.key, err)
		}
	}
	if traffic.file != "" {
		s.Setup = s.WithTraffic()
	}
	if err := s.Check(); err != nil {
		return story{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (s *story) readProfile() (err error) {
	if s.profile, err = s.profileNamed(s.Scenario.Pool.Profile); err != nil {
		return err
	}
	s.Profile, err = s.profile.Profile()
	return err
}

func (s *story) readProfiles() error {
	for _, pool := range s.Scenario.BatchPools {
		if pool.Profile == "" {
			continue
		}
		f, err := s.profileNamed(pool.Profile)
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

// profileNamed is a bundled profile, or a file in the scenario's folder.
func (s *story) profileNamed(name string) (profile.File, error) {
	if _, bundled := engine.ProfileNamed(name); !bundled {
		name = scenario.ResolvePath(s.file, name)
	}
	return profileAt(name)
}

func (s *story) readTrace() (err error) {
	in := s.Scenario.Interactive
	if in.Trace == "" {
		return nil
	}
	s.Trace, err = readBeside(s, in.Trace, func(r io.Reader) (*workload.Trace, error) {
		return workload.Read(in.Trace, in.Format, r)
	})
	return err
}

func (s *story) readShape() (err error) {
	name, file := s.Scenario.Interactive.ShapeFile()
	if !file {
		return nil
	}
	s.Shape, err = readBeside(s, name, func(r io.Reader) (*workload.Curve, error) {
		return workload.ReadCurve(name, r, s.Scenario.Interactive.ShapeColumn)
	})
	return err
}

// readBeside reads a file in the scenario's folder.
func readBeside[T any](s *story, name string, read func(io.Reader) (T, error)) (T, error) {
	in, err := os.Open(scenario.ResolvePath(s.file, name))
	if err != nil {
		var none T
		return none, err
	}
	defer in.Close()
	hash := sha256.New()
	content, err := read(io.TeeReader(in, hash))
	if err == nil {
		_, err = io.Copy(hash, in) // what the reader had no use for
	}
	s.read = append(s.read, hex.EncodeToString(hash.Sum(nil)))
	return content, err
}

// on is the story on a day, with a policy to act in it.
func (s *story) on(seed uint64, policy simulator.Policy) simulator.Setup {
	setup := s.Setup
	setup.Seed, setup.Policy = seed, policy
	return setup
}

// empty is the report's part for the story, before anything has run.
func (s *story) empty(seeds []uint64) report.Scenario {
	in := s.Scenario.Interactive.SLO
	told := report.Scenario{
		Name: s.Scenario.Name, About: s.Scenario.About, File: s.file,
		Hours: s.Scenario.Horizon.Hours(), Replicas: s.Scenario.Pool.Replicas,
		Profile: report.Profile{Name: s.profile.Name, Calibrated: s.profile.Measured},
		SLO: report.SLO{TTFT: milliseconds(in.TTFT), TPOT: milliseconds(in.TPOT),
			Attainment: in.Attainment},
	}
	if fit := s.profile.Fit; fit != nil {
		percent := 100 * fit.Error.Mean
		told.Profile.MeanError = &percent
	}
	if beside := s.Scenario.Goals.ComparedWith.Scenario; beside != "" {
		told.ComparedWith = filepath.Clean(scenario.ResolvePath(s.file, beside))
	}
	for _, seed := range seeds {
		told.Seeds = append(told.Seeds, report.Seed{Seed: seed})
	}
	told.SetGoals(s.Scenario.Goals)
	return told
}

// traffic is what there is to say of how the first day's was made.
func (s *story) traffic(seed uint64) (*report.Traffic, error) {
	if s.Trace == nil {
		return nil, nil // and not told once more to find out
	}
	h, err := s.on(seed, simulator.Policy{}).SummarizeTraffic()
	if err != nil {
		return nil, fmt.Errorf("%s: interactive traffic: %w", s.file, err)
	}
	return report.TrafficOf(h), nil
}
