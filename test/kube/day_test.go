package kube_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/workload"
)

// day is a scenario of the simulator that is run in real time, speed times as fast.
type day struct {
	simulator.Setup
	speed float64
	cfg   config.Config // of the daemon, in real durations
	jobs  []*dayJob
}

// dayJob is a job of the day as a batch file.
type dayJob struct {
	*workload.Job
	file  []byte
	lines []dayLine
}

// dayLine is what a line of a file must be answered with.
type dayLine struct {
	id     string
	body   string // SHA-256, in hexadecimal
	tokens int    // of the answer
}

// model is the one that the emulated runners serve.
const model = "emulated-model"

// loadDay reads a scenario of testdata/loop and the configuration there.
func loadDay(t *testing.T, scenario string, speed float64) *day {
	t.Helper()
	dir := filepath.Join("testdata", "loop")
	all, err := compare.OpenScenarios([]string{filepath.Join(dir, scenario+".yaml")},
		compare.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	own := compare.Configuration{File: filepath.Join(dir, "tidefill.yaml")}
	candidate, err := own.Candidate("")
	if err != nil {
		t.Fatal(err)
	}
	d := &day{Setup: all[0].Setup, speed: speed}
	candidate.Policy.Scale.Harvest.Slots = 0 // nobody else needs a sequence
	d.Seed, d.Policy = 1, candidate.Policy
	if d.cfg, err = config.Load(own.File); err != nil {
		t.Fatal(err)
	}
	d.cfg.Autoscale.Harvest.Slots = 0
	jobs, err := d.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	for job, ok := jobs.Next(); ok; job, ok = jobs.Next() {
		d.jobs = append(d.jobs, newDayJob(t, job))
	}
	return d
}

// newDayJob writes the lines of a job. Their answers have the length that the scenario draws, which
// nobody but the runner knows beforehand: it is a least length, and the runners would answer one
// token otherwise.
func newDayJob(t *testing.T, job *workload.Job) *dayJob {
	t.Helper()
	j := &dayJob{Job: job}
	var file bytes.Buffer
	for i := range job.Lines {
		request := job.Line(i)
		body, err := json.Marshal(map[string]any{"model": model, "min_tokens": request.Output,
			"prompt": promptOf(fmt.Sprintf("%s %d ", job.Name, i), request.Input)})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		l := dayLine{id: fmt.Sprintf("%s-%d", job.Name, i), body: hex.EncodeToString(sum[:]),
			tokens: request.Output}
		fmt.Fprintf(&file, `{"custom_id":%q,"method":"POST","url":"/v1/completions","body":%s}`+
			"\n", l.id, body)
		j.lines = append(j.lines, l)
	}
	j.file = file.Bytes()
	return j
}

// promptOf returns a text of so many tokens that begins with a name. The runners count 3.6 bytes as
// a token.
func promptOf(name string, tokens int) string {
	size := int(3.6 * float64(tokens))
	return (name + strings.Repeat("idle capacity ", size/14+1))[:max(size, len(name))]
}

// real returns how long a duration of the day takes.
func (d *day) real(of time.Duration) time.Duration {
	return time.Duration(float64(of) / d.speed)
}

// emulated returns how long a real duration is in the day.
func (d *day) emulated(of time.Duration) time.Duration {
	return time.Duration(float64(of) * d.speed)
}

// compressed returns the daemon's configuration with all durations of the policies divided by the
// speed, and engines that are as much faster. What is left as it is plays no part: the forecast of
// interactive traffic, of which there is none, and how far ahead is planned.
func (d *day) compressed() config.Config {
	cfg := d.cfg
	a := &cfg.Autoscale
	for _, of := range []*time.Duration{&a.Step, &a.Start.Cold, &a.Deadline.Guard, &a.Down.Hold,
		&a.Down.BatchHold, &a.Down.Dry, &a.Down.Drain, &a.Down.Every, &a.Harvest.Memory,
		&a.Harvest.Trust, &a.Harvest.Busy, &cfg.Scheduler.GuardMin} {
		*of = d.real(*of)
	}
	cfg.Dispatch.Plan.Cost.AssumedRate *= d.speed
	m := &cfg.FlowControl.Engine.CostModel
	*m = costmodel.Model{C0: m.C0 / d.speed, C1: m.C1 / d.speed, C2: m.C2 / d.speed, N0: m.N0,
		KV: m.KV / d.speed, P1: m.P1 / d.speed, P2: m.P2 / d.speed}
	return cfg
}

// runner returns the configuration of a replica, an engine as the scenario has it.
func (d *day) runner(number int) emulator.Config {
	pool := d.Scenario.Pool
	c := emulator.DefaultConfig()
	c.Models = []string{model}
	c.Profile, c.Scheduling, c.PrefixCaching = pool.Profile, pool.Scheduling, pool.PrefixCaching
	c.KVTokens, c.MaxBatchedTokens, c.MaxSeqs = pool.KVTokens, pool.MaxBatchedTokens, pool.MaxSeqs
	c.MaxModelLen = 0
	c.Output = emulator.Lengths{Median: 1, Max: 1}
	c.Speedup, c.Seed, c.Record = d.speed, d.Seed+uint64(number), true
	return c
}

// optimum returns the fewest replica-hours that meet all deadlines, by the linear program of the
// simulator, and the hours of a simulation with the same configuration.
func (d *day) optimum(t *testing.T) (least, simulated float64) {
	t.Helper()
	quiet, err := simulator.RunNoBatch(d.Setup, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	bound, err := oracle.GPUHours(d.Setup, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(bound.Infeasible) > 0 {
		t.Fatalf("the jobs %v can't be met; the scenario must be feasible", bound.Infeasible)
	}
	result, err := simulator.RunBatch(d.Setup, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return bound.GPUHours, result.GPUHours
}
