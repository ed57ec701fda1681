package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Job is a batch that a user submits.
type Job struct {
	Name string `yaml:"name"`
	// Tenant that submits it. Tenants share the pools.
	Tenant string `yaml:"tenant"`
	// Kind of its lines: gen, score, score-shared, bal or mix. Empty: Input and Output are given.
	Kind string `yaml:"kind"`
	// Input and Output are the tokens of its lines, if Kind is empty.
	Input  Length `yaml:"input"`
	Output Length `yaml:"output"`
	// Shared is the share of each prompt that is the same for all lines, if Kind is empty.
	Shared float64 `yaml:"shared"`
	// At is when it is submitted.
	At time.Duration `yaml:"at"`
	// Window is the time from then to its deadline, when it expires. 0: no deadline.
	Window time.Duration `yaml:"window"`
	// Lines is its number of lines. 0: without end.
	Lines int `yaml:"lines"`
}

// LineKind returns the kind of the job's lines.
func (j Job) LineKind() (workload.Kind, error) {
	if j.Kind != "" {
		return workload.LookupKind(j.Kind)
	}
	return workload.Kind{
		Name: fmt.Sprintf("%.0f in, %.0f out", j.Input.Median, j.Output.Median),
		Parts: []workload.Part{{Weight: 1, Input: j.Input.Workload(), Output: j.Output.Workload(),
			Shared: j.Shared}},
	}, nil
}

// JobStream generates jobs of all kinds: a quarter gen, a quarter score, half bal; six in ten due
// in a day, the others in 4 hours or in one.
type JobStream struct {
	// PerHour is the mean number of jobs. 0: none.
	PerHour float64 `yaml:"per_hour"`
	// Lines of a job.
	Lines Length `yaml:"lines"`
	// Until is when the last may be submitted. 0: the horizon.
	Until time.Duration `yaml:"until"`
}

func (s JobStream) validate(horizon time.Duration) error {
	var all problems
	all.check(s.PerHour >= 0 && s.PerHour <= 1000,
		"job_stream.per_hour is %v, want 0 for none or up to 1000", s.PerHour)
	all.check(s.PerHour > 0 || s.Until == 0,
		"job_stream.until is %s, but there are no jobs; set job_stream.per_hour", s.Until)
	all.check(s.Until >= 0 && s.Until <= horizon,
		"job_stream.until is %s, want 0 to the horizon, %s", s.Until, horizon)
	all.check(s.Lines.Median >= 1 && s.Lines.Median <= maxLines,
		"job_stream.lines.median is %v, want 1 to %d", s.Lines.Median, maxLines)
	all.check(s.Lines.Sigma >= 0 && s.Lines.Sigma <= 5, "job_stream.lines.sigma is %v, want 0 to 5",
		s.Lines.Sigma)
	all.check(s.Lines.Max >= 1 && s.Lines.Max <= maxLines,
		"job_stream.lines.max is %d, want 1 to %d", s.Lines.Max, maxLines)
	return errors.Join(all...)
}

// streamPrefix begins the names of the stream's jobs; their number follows.
const streamPrefix = "job-"

func validateJobs(jobs []Job, stream JobStream) error {
	var all problems
	names := map[string]bool{}
	for i, j := range jobs {
		check := func(ok bool, format string, args ...any) {
			all.check(ok, "jobs[%d]."+format, append([]any{i}, args...)...)
		}
		check(j.Name != "", "name is empty")
		check(j.Name == "" || !names[j.Name],
			"name is %q, like that of a job above; lines are drawn by it", j.Name)
		_, notNumber := strconv.Atoi(strings.TrimPrefix(j.Name, streamPrefix))
		check(stream.PerHour == 0 || !strings.HasPrefix(j.Name, streamPrefix) || notNumber != nil,
			"name is %q, as jobs of job_stream are called", j.Name)
		names[j.Name] = true
		all.add(fmt.Sprintf("jobs[%d]", i), j.validateLines())
		check(j.At >= 0 && j.At <= maxHorizon, "at is %s, want 0 to %s", j.At, maxHorizon)
		check(j.Window >= 0 && j.Window <= maxHorizon,
			"window is %s, want 0 for no deadline or up to %s", j.Window, maxHorizon)
		check(j.Lines >= 0 && j.Lines <= maxLines,
			"lines is %d, want 0 for an endless backlog or up to %d", j.Lines, maxLines)
	}
	return errors.Join(all...)
}

func (j Job) validateLines() error {
	var all problems
	if j.Kind != "" {
		_, err := workload.LookupKind(j.Kind)
		all.check(err == nil, "kind: %w", err)
		all.check(j.Input == Length{} && j.Output == Length{} && j.Shared == 0,
			"kind is %q, which has lengths of its own; remove it, or input, output and shared",
			j.Kind)
		return errors.Join(all...)
	}
	if (j.Input == Length{} || j.Output == Length{}) {
		all.check(false, "kind is empty; name one, or give input and output")
		return errors.Join(all...)
	}
	all.add("input", j.Input.validate())
	all.add("output", j.Output.validate())
	all.check(j.Shared >= 0 && j.Shared <= 1, "shared is %v, want a share of the prompt, 0 to 1",
		j.Shared)
	return errors.Join(all...)
}
