package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

func simulateCommand() *cobra.Command {
	var (
		settings settings
		file     string
		seed     uint64
		asJSON   bool
	)
	cmd := &cobra.Command{
		Use:   "simulate SCENARIO.yaml...",
		Short: "Try a policy on a simulated pool, faster than real time",
		Long: `Run the daemon's own scheduling and flow control against a model of the pool, and report what it would do to interactive
users and to batches. Each scenario is told twice with the same arrivals, without batch work and with it; the difference is what batch
work costs. docs/simulator.md has the keys of a scenario and what is not modelled.

The same scenario, configuration and seed give the same bytes on standard output. Progress goes to standard error.`,
		Example: `  tidefill simulate simulator/scenarios/s1-steady.yaml
  tidefill simulate s1.yaml --set flowcontrol.policy=fixed --set flowcontrol.fixed.per_runner=16
  tidefill simulate s1.yaml --config tidefill.yaml --seed 2 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := settings.parse()
			if err != nil {
				return err
			}
			cfg, err := config.Load(file, given...)
			if err != nil {
				return err
			}
			stories, err := openStories(args, cfg, seed)
			if err != nil {
				return err
			}
			for i, s := range stories {
				result, err := s.run(cmd.Context(), cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(cmd.OutOrStdout(), simulation{Profile: s.provenance(), Result: result})
				} else {
					err = writeReport(cmd.OutOrStdout(), s, result, i > 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&seed, "seed", 1, "draw everything random from this `number`")
	flags.StringVar(&file, "config", "", "take the policies from this `file`, as serve does (default: the daemon's defaults)")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object a scenario")
	settings.register(cmd)
	return cmd
}

// story is a scenario with its files read.
type story struct {
	simulator.Setup
	file    string
	profile profile.File
}

// openStories reads all scenarios before the first is run, and tells the faults of all.
func openStories(files []string, cfg config.Config, seed uint64) ([]story, error) {
	stories := make([]story, 0, len(files))
	var faults []error
	for _, file := range files {
		s, err := openStory(file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.Seed = seed
		s.Policy = simulator.Policy{
			Scheduler: cfg.Scheduler, Flow: cfg.FlowControl, Plan: cfg.Dispatch.Plan, ChunkLines: cfg.Dispatch.ChunkLines,
		}
		stories = append(stories, s)
	}
	return stories, errors.Join(faults...)
}

func openStory(file string) (story, error) {
	read, err := scenario.Read(file, scenario.Files{
		Read: os.ReadFile,
		Lay:  func(file string, content []byte, s *scenario.Scenario) error { return config.Read(file, content, s) },
	})
	if err != nil {
		return story{}, err
	}
	s := story{file: file, Setup: simulator.Setup{Scenario: read}}
	if err := s.readProfile(); err != nil {
		return story{}, fmt.Errorf("%s: pool.profile: %w", file, err)
	}
	if s.Scenario.Interactive.Trace != "" {
		if err := s.readTrace(); err != nil {
			return story{}, fmt.Errorf("%s: interactive.trace: %w", file, err)
		}
	}
	if name, ok := s.Scenario.Interactive.ShapeFile(); ok {
		if err := s.readShape(name); err != nil {
			return story{}, fmt.Errorf("%s: interactive.shape: %w", file, err)
		}
	}
	if err := s.Check(); err != nil {
		return story{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// readProfile reads those of all pools.
func (s *story) readProfile() (err error) {
	if s.profile, err = s.profileAt(s.Scenario.Pool.Profile); err != nil {
		return err
	}
	if s.Profile, err = s.profile.Profile(); err != nil {
		return err
	}
	s.Profiles = map[string]engine.Profile{}
	for i, pool := range s.Scenario.BatchPools {
		if pool.Profile == "" {
			continue
		}
		file, err := s.profileAt(pool.Profile)
		if err != nil {
			return fmt.Errorf("batch_pools[%d].profile: %w", i, err)
		}
		if s.Profiles[pool.Profile], err = file.Profile(); err != nil {
			return fmt.Errorf("batch_pools[%d].profile: %w", i, err)
		}
	}
	return nil
}

// profileAt is a bundled profile, or a file beside the scenario.
func (s *story) profileAt(name string) (profile.File, error) {
	if _, bundled := engine.ProfileNamed(name); !bundled {
		name = scenario.Beside(s.file, name)
	}
	return profileAt(name)
}

func (s *story) readShape(name string) error {
	in, err := os.Open(scenario.Beside(s.file, name))
	if err != nil {
		return err
	}
	defer in.Close()
	s.Shape, err = workload.ReadCurve(name, in, s.Scenario.Interactive.ShapeColumn)
	return err
}

func (s *story) readTrace() error {
	in, err := os.Open(scenario.Beside(s.file, s.Scenario.Interactive.Trace))
	if err != nil {
		return err
	}
	defer in.Close()
	s.Trace, err = workload.Read(s.Scenario.Interactive.Trace, s.Scenario.Interactive.Format, in)
	return err
}

// run simulates, and tells on the way how far it has come.
func (s *story) run(ctx context.Context, stderr io.Writer) (simulator.Result, error) {
	begun := time.Now()
	bar := newMeter(stderr)
	result, err := simulator.Run(s.Setup, func(share float64) error {
		if bar.width != nil {
			fmt.Fprintf(stderr, "\r\x1b[K%s: %3.0f%%", s.Scenario.Name, 100*share)
		}
		return ctx.Err()
	})
	if bar.width != nil {
		fmt.Fprint(stderr, "\r\x1b[K")
	}
	if err != nil {
		return result, err
	}
	// Each hour is told twice.
	took, hours := time.Since(begun), 2*result.Hours
	_, err = fmt.Fprintf(stderr, "%s: %.3g simulated hours in %s, %.2g hours a second\n", s.Scenario.Name, hours, took.Round(10*time.Millisecond), hours/took.Seconds())
	return result, err
}
