package scenario

import (
	"errors"
	"time"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Job is a batch that a user hands in.
type Job struct {
	Name string `yaml:"name"`
	// Kind of its lines: gen, score, score-shared, bal or mix.
	Kind string `yaml:"kind"`
	// At is when it comes.
	At time.Duration `yaml:"at"`
	// Window is the time from then to its deadline, at which it expires. 0: no deadline.
	Window time.Duration `yaml:"window"`
	// Lines is how many it has. 0: more than anyone can do.
	Lines int `yaml:"lines"`
}

func validateJobs(jobs []Job) error {
	var all faults
	names := map[string]bool{}
	for i, j := range jobs {
		check := func(ok bool, format string, args ...any) {
			all.check(ok, "jobs[%d]."+format, append([]any{i}, args...)...)
		}
		check(j.Name != "", "name is empty")
		check(j.Name == "" || !names[j.Name], "name is %q, like that of a job above; lines are drawn by it", j.Name)
		names[j.Name] = true
		_, err := workload.LookupKind(j.Kind)
		check(err == nil, "kind: %w", err)
		check(j.At >= 0 && j.At <= longest, "at is %s, want 0 to %s", j.At, longest)
		check(j.Window >= 0 && j.Window <= longest, "window is %s, want 0 for no deadline or up to %s", j.Window, longest)
		check(j.Lines >= 0 && j.Lines <= mostLines, "lines is %d, want 0 for an endless backlog or up to %d", j.Lines, mostLines)
	}
	return errors.Join(all...)
}
