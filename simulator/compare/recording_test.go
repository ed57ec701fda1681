package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator"
)

// recordingWriter writes a recording of a simulation as a daemon writes one of a real pool.
type recordingWriter struct{ bytes.Buffer }

func (w *recordingWriter) write(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Write(append(text, '\n'))
}

func (w *recordingWriter) Put(e recording.Entry) { w.write(e) }

// recordSimulation simulates half an hour under a policy and returns the recording.
func recordSimulation(t *testing.T, policy string) (file string) {
	t.Helper()
	dir := t.TempDir()
	scenario := filepath.Join(dir, "recorded.yaml")
	if err := os.WriteFile(scenario, []byte(`
name: recorded
horizon: 30m
pool: {profile: llama-7b-h100, replicas: 2, kv_tokens: 110000}
interactive: {generator: conversation, rate: 6}
metrics: {period: 1s, delay: 20ms}
jobs: [{name: night, kind: bal}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openScenario(scenario, Trace{})
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := Configuration{}.Candidate(policy)
	if err != nil {
		t.Fatal(err)
	}
	var w recordingWriter
	slo := s.Scenario.Interactive.SLO
	w.write(recording.Header{Version: recording.Version, Began: simulator.Epoch(),
		Policy: candidate.Policy.Flow.Policy,
		TTFT:   slo.TTFT.Seconds(), TPOT: slo.TPOT.Seconds()})
	ttft := []float64{.05, .1, .25, .5, .75, 1, 2.5, 5, 10, math.Inf(1)}
	tpot := []float64{.005, .01, .015, .02, .025, .03, .04, .05, .075, .1, .2, math.Inf(1)}
	recorder := newSimulatedRecorder(ttft, tpot)
	recorder.Recorder = recording.NewRecorder(simulator.Epoch(), &w)
	setup := s.With(3, candidate.Policy)
	setup.Outputs.Recorder = recorder
	if _, err := simulator.RunAgainst(simulator.NoBatch{}, setup, func(float64) error {
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "recording.jsonl")
	if err := os.WriteFile(file, w.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A recording of a simulation differs from its simulation only by what recordings leave out.
func TestRecordingComparisonOfASimulation(t *testing.T) {
	const policy = "headroom,streams=all" // only streams show the time of single iterations
	file := recordSimulation(t, policy)
	compare := func(profile string) RecordingReport {
		t.Helper()
		c := RecordingComparison{Files: []string{file}, Profile: profile, Policy: policy, Seed: 1}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, profile := range []string{"llama-7b-h100", ""} {
		r := compare(profile)
		if r.Runners != 2 || r.Policy != "headroom streams=all" || r.Seconds < 1790 ||
			r.Calibrated != (profile == "") {
			t.Errorf("%+v", r)
		}
		limits := map[string]float64{
			"requests running, all runners": 0.15, "harvest": 0.15,
			"TPOT of all requests p50": 0.15, "TPOT of all requests p90": 0.15,
			"iteration, mean of a second p50": 0.15, "TTFT of all requests p50": 0.4,
			"interactive TPOT p50": 0.15,
		}
		for _, f := range r.Figures {
			limit, judged := limits[f.Name]
			switch delete(limits, f.Name); {
			case !judged:
			case f.Error == nil:
				t.Errorf("profile %q: %s is not compared: %+v", profile, f.Name, f)
			case math.Abs(*f.Error) > limit:
				t.Errorf("profile %q: %s is off by %.1f %%: recorded %v, simulated %v", profile,
					f.Name, 100**f.Error, *f.Recorded, *f.Simulated)
			}
		}
		if len(limits) > 0 {
			t.Errorf("figures are missing: %v", limits)
		}
	}
	var first, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &again} {
		r := compare("")
		if err := r.Text(out); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != again.String() || !strings.Contains(first.String(), "recorded") {
		t.Errorf("the same recording gives\n%s\nand\n%s", &first, &again)
	}
	// An engine that is twice as slow is not that of the recording.
	if other := compare("llama-70b-a100"); other.Profile != "llama-70b-a100" {
		t.Errorf("%+v", other)
	}
}

// What a scenario does that was not recorded does not keep its pool from being used.
func TestRecordingReplacesWhatTheScenarioDoes(t *testing.T) {
	file := recordSimulation(t, "fixed,per_runner=8")
	for _, name := range []string{"s10-two-pools", "s8-stale"} {
		s, err := openScenario(filepath.Join("..", "scenarios", name+".yaml"), Trace{})
		if err != nil {
			t.Fatal(err)
		}
		var read recorded
		if err := readRecordings([]string{file}, &read); err != nil {
			t.Fatal(err)
		}
		if err := (&RecordingReport{}).replace(&s, &read.Builder, read.header, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if sc := s.Scenario; sc.Pool.Replicas != 2 || len(sc.BatchPools) > 0 ||
			len(sc.Metrics.Faults) > 0 || sc.JobStream.Until != 0 {
			t.Errorf("%s: %+v remains", name, sc)
		}
	}
}
