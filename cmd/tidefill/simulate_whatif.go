package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
)

// runWhatIf compares scenarios with changed ones.
func (s *simulation) runWhatIf(
	ctx context.Context, files []string, out, stderr io.Writer,
) error {
	c, err := s.Open(files, stderr)
	if err != nil {
		return err
	}
	// A scenario that goals compare with was not asked about.
	c.Scenarios = slices.DeleteFunc(c.Scenarios, func(x compare.Scenario) bool {
		asked := func(file string) bool { return filepath.Clean(file) == x.File }
		return !slices.ContainsFunc(files, asked)
	})
	return s.differ(ctx, c, nil, out)
}

// differ compares the scenarios of a comparison with changed ones.
func (s *simulation) differ(
	ctx context.Context, c *compare.Comparison, notes []string, out io.Writer,
) error {
	changes, err := compare.ParseChanges(s.whatIf)
	if err != nil {
		return err
	}
	result, err := (&compare.WhatIf{Comparison: c, Changes: changes, Notes: notes}).Run(ctx)
	if err != nil {
		return err
	}
	return s.print(out, &result)
}

// replay simulates a recording: as it was or, with --what-if, compared with a changed one.
func (s *simulation) replay(ctx context.Context, scenarios []string, out, stderr io.Writer) error {
	cfg, err := s.Configuration()
	if err != nil {
		return err
	}
	r := compare.Replay{Path: s.recording, Policies: s.Names,
		RecordingComparison: compare.RecordingComparison{Profile: s.profile, Configuration: cfg,
			Seed: s.Seed, Log: stderr}}
	if len(scenarios) > 0 {
		r.Scenario = scenarios[0]
	}
	if s.since != "" {
		if r.Since, err = config.ParseDuration(s.since); err != nil || r.Since <= 0 {
			return usageErrorf("--since is %q; write a time until the end of the recording, such "+
				"as 7d or 12h", s.since)
		}
	}
	c, notes, err := r.Open()
	if err != nil {
		return err
	}
	c.Timelines = s.Out != ""
	if len(s.whatIf) > 0 {
		return s.differ(ctx, c, notes, out)
	}
	return s.compare(ctx, c, out)
}
