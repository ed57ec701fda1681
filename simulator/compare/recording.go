package compare

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/replay"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// RecordingComparison simulates what serve --record has recorded and compares the measures of both.
type RecordingComparison struct {
	// Files are the recordings of one start of the daemon, the oldest first.
	Files []string
	// Scenario is a scenario file that the pool is taken from. Empty: a default pool.
	Scenario string
	// Profile is a bundled profile or a file for the engines. Empty: that of the scenario or,
	// without one, a profile fitted to the recording.
	Profile string
	// Policy is the flow-control policy, as for Configuration.Candidate. Empty: the recorded one.
	Policy        string
	Configuration Configuration
	Seed          uint64
	Log           io.Writer // takes progress; nil: none
}

// vllmSeqs and vllmBatch are vLLM's default numbers of sequences and tokens in an iteration.
const (
	vllmSeqs  = 256
	vllmBatch = 2048
)

// Run simulates the recording and returns the measures side by side.
func (c *RecordingComparison) Run(ctx context.Context) (RecordingReport, error) {
	var recorded replay.Builder
	var measured fit.RecordingReader
	header, err := readRecordings(c.Files, func(e recording.Entry) {
		recorded.Add(e)
		measured.Add(e)
	})
	if err != nil {
		return RecordingReport{}, err
	}
	files := strings.Join(c.Files, ", ")
	if err := recorded.Check(); err != nil {
		return RecordingReport{}, fmt.Errorf("%s: %w", files, err)
	}
	policy := header.Policy
	if c.Policy != "" {
		policy = c.Policy
	}
	candidate, err := c.Configuration.Candidate(policy)
	if err != nil {
		return RecordingReport{}, fmt.Errorf("policy %s: %w", policy, err)
	}
	s := Scenario{}
	if c.Scenario == "" {
		s.Scenario = scenario.Default()
	} else if s, err = openScenario(c.Scenario, Trace{}); err != nil {
		return RecordingReport{}, err
	}
	r := RecordingReport{Recordings: c.Files, Seconds: recorded.Length().Seconds(),
		Runners: recorded.Runners(), Policy: candidate.Name, Seed: c.Seed}
	if err := c.chooseProfile(&r, &s, &measured); err != nil {
		return RecordingReport{}, err
	}
	if err := r.replace(&s, &recorded, header, workload.Seed(c.Seed)); err != nil {
		return RecordingReport{}, fmt.Errorf("%s: %w", files, err)
	}
	setup := s.With(c.Seed, candidate.Policy)
	ttft, tpot := recorded.Summary.Bounds()
	simulated := newSimulatedRecorder(ttft, tpot)
	setup.Outputs.Recorder = simulated
	progress := NewProgress(c.Log, setup.Scenario.Horizon)
	defer progress.Stop()
	if _, err := simulator.RunAgainst(simulator.NoBatch{}, setup,
		progress.Run(ctx, &s, candidate.Name)); err != nil {
		return RecordingReport{}, err
	}
	r.addFigures(&recorded.Summary, &simulated.summary)
	return r, nil
}

// readRecordings reads recordings of one start of the daemon, one after the other.
func readRecordings(
	files []string, fn func(recording.Entry),
) (header recording.Header, err error) {
	last := 0.0
	for i, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return header, err
		}
		h, err := recording.Read(name, bytes.NewReader(content), func(e recording.Entry) error {
			if e.At < last {
				return fmt.Errorf("t is %v, before the end of the previous file; "+
					"name the oldest file first", e.At)
			}
			last = e.At
			fn(e)
			return nil
		})
		if err != nil {
			return header, err
		}
		if i > 0 && !h.Began.Equal(header.Began) {
			return header, fmt.Errorf("%s began at %s, %s at %s: the daemon was restarted between "+
				"them; compare them one by one", files[0], header.Began.Format(time.RFC3339), name,
				h.Began.Format(time.RFC3339))
		}
		header = h
	}
	return header, nil
}

// chooseProfile sets the profile of the engines.
func (c *RecordingComparison) chooseProfile(
	r *RecordingReport, s *Scenario, measured *fit.RecordingReader,
) (err error) {
	switch {
	case c.Profile != "":
		if s.Fitted, err = OpenProfile(c.Profile); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		s.Scenario.Pool.Profile = c.Profile
	case c.Scenario == "":
		if s.Fitted, err = fitRecording(measured); err != nil {
			return fmt.Errorf("no profile is given, and none can be fitted to the recording: %w",
				err)
		}
		s.Scenario.Pool.Profile = s.Fitted.Name
		r.Notes = append(r.Notes, fmt.Sprintf("the cost model is fitted to the recording itself; "+
			"%d sequences and %d tokens an iteration are vLLM's defaults: give a profile if the "+
			"engines' differ", vllmSeqs, vllmBatch))
	}
	s.Profile, err = s.Fitted.Profile()
	r.Profile, r.Calibrated = s.Fitted.Name, s.Fitted.Measured
	return err
}

func fitRecording(measured *fit.RecordingReader) (profile.File, error) {
	obs, err := measured.Observations()
	if err != nil {
		return profile.File{}, err
	}
	result, err := fit.Fit(obs, fit.Options{Resamples: -1})
	if err != nil {
		return profile.File{}, err
	}
	obs.MaxSeqs, obs.MaxBatch = vllmSeqs, vllmBatch
	return profile.Of("the recording's own", result, obs, nil, engine.Profile{}, 0, nil), nil
}

// replace puts the recorded traffic and jobs in the place of the scenario's.
func (r *RecordingReport) replace(
	s *Scenario, recorded *replay.Builder, header recording.Header, seed workload.Seed,
) error {
	traffic, err := recorded.Traffic(seed)
	if err != nil {
		return err
	}
	sc := &s.Scenario
	sc.Name, sc.Horizon, sc.Jobs, sc.Faults, sc.Metrics.Faults = "the recording",
		recorded.Length(), nil, nil, nil
	sc.JobStream.PerHour, sc.JobStream.Until = 0, 0
	// The recorded runners are those of all pools.
	sc.Pool.Replicas, sc.Pool.Min, sc.Pool.Max, sc.BatchPools = recorded.Runners(), 0, 0, nil
	slo := sc.Interactive.SLO
	slo.TTFT = cmp.Or(time.Duration(header.TTFT*float64(time.Second)), slo.TTFT)
	slo.TPOT = cmp.Or(time.Duration(header.TPOT*float64(time.Second)), slo.TPOT)
	sc.Interactive = scenario.Interactive{Generator: scenario.None, SLO: slo,
		SLOWithheld: header.TTFT == 0 && header.TPOT == 0}
	if traffic != nil {
		sc.Interactive.Generator, sc.Interactive.Trace, sc.Interactive.Format = "", traffic.Name(),
			workload.CSV
		s.Trace = traffic
	}
	s.ExtraJobs = recorded.Jobs()
	r.Notes = append(r.Notes, "in each ten seconds there are as many interactive requests as the "+
		"engines counted beyond the batch lines; their times within it and the spread of their "+
		"sizes are drawn")
	if len(s.ExtraJobs) == 0 {
		r.Notes = append(r.Notes, "no batch work was recorded")
	}
	return s.Check()
}
