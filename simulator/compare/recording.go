package compare

import (
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
	var read recorded
	err := readRecordings(c.Files, &read)
	if err != nil {
		return RecordingReport{}, err
	}
	r, s, candidate, err := c.scenario(&read)
	if err != nil {
		return RecordingReport{}, err
	}
	setup := s.With(c.Seed, candidate.Policy)
	ttft, tpot := read.Summary.Bounds()
	simulated := newSimulatedRecorder(ttft, tpot)
	setup.Outputs.Recorder = simulated
	progress := NewProgress(c.Log, setup.Scenario.Horizon)
	defer progress.Stop()
	if _, err := simulator.RunAgainst(simulator.NoBatch{}, setup,
		progress.Run(ctx, &s, candidate.Name)); err != nil {
		return RecordingReport{}, err
	}
	r.addFigures(&read.Summary, &simulated.summary)
	return r, nil
}

// recorded is what was read of a recording.
type recorded struct {
	replay.Builder
	measured fit.RecordingReader // of the last start of the daemon
	header   recording.Header    // of the last file
}

func (r *recorded) add(e recording.Entry) {
	r.Builder.Add(e)
	r.measured.Add(e)
}

// scenario returns the scenario of a recording, with the policy to try.
func (c *RecordingComparison) scenario(
	read *recorded,
) (r RecordingReport, s Scenario, candidate Candidate, err error) {
	files := strings.Join(c.Files, ", ")
	if err := read.Check(); err != nil {
		return r, s, candidate, fmt.Errorf("%s: %w", files, err)
	}
	policy := cmp.Or(c.Policy, read.header.Policy)
	if candidate, err = c.Configuration.Candidate(policy); err != nil {
		return r, s, candidate, fmt.Errorf("policy %s: %w", policy, err)
	}
	if c.Scenario == "" {
		s.Scenario = scenario.Default()
	} else if s, err = openScenario(c.Scenario, Trace{}); err != nil {
		return r, s, candidate, err
	}
	r = RecordingReport{Recordings: c.Files, Seconds: read.Length().Seconds(),
		Runners: read.Runners(), Policy: candidate.Name, Seed: c.Seed}
	if err := c.chooseProfile(&r, &s, &read.measured); err != nil {
		return r, s, candidate, err
	}
	if err := r.replace(&s, &read.Builder, read.header, workload.Seed(c.Seed)); err != nil {
		return r, s, candidate, fmt.Errorf("%s: %w", files, err)
	}
	return r, s, candidate, nil
}

// readRecordings reads recordings of one start of the daemon, one after the other.
func readRecordings(files []string, into *recorded) error {
	last := 0.0
	for i, name := range files {
		header, err := readRecording(name, func(e recording.Entry) error {
			if e.At < last {
				return fmt.Errorf("t is %v, before the end of the previous file; "+
					"name the oldest file first", e.At)
			}
			last = e.At
			into.add(e)
			return nil
		})
		if err != nil {
			return err
		}
		if i > 0 && !header.Began.Equal(into.header.Began) {
			return fmt.Errorf("%s began at %s, %s at %s: the daemon was restarted between "+
				"them; compare them one by one", files[0],
				into.header.Began.Format(time.RFC3339), name, header.Began.Format(time.RFC3339))
		}
		into.header = header
	}
	return nil
}

func readRecording(name string, fn func(recording.Entry) error) (recording.Header, error) {
	file, err := os.Open(name)
	if err != nil {
		return recording.Header{}, err
	}
	defer file.Close()
	return recording.Read(name, file, fn)
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
