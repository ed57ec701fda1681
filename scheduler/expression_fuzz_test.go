package scheduler_test

import (
	"testing"

	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/scheduler/schedulertest"
)

// Whatever an operator writes either refuses to start or ranks every job, or says that it could
// not.
func FuzzExpression(f *testing.F) {
	for _, source := range []string{
		"", "deadline_s - 3600 * priority", "latest_start_s / work",
		"has_deadline ? deadline_s : 0", "tenant matches '^a' ? 1 : 2",
		"let x = min(work, lines); x % 3", "[1, 2][priority]", "1 % lines",
		"model in ['a', 'b'] ? -1 : 1", "len(tenant) ?? nil",
	} {
		f.Add(source)
	}
	jobs := schedulertest.Jobs(1, 20)
	f.Fuzz(func(t *testing.T, source string) {
		cfg := scheduler.DefaultConfig()
		cfg.Policy, cfg.Expression = "expression", source
		q, err := scheduler.NewQueue(cfg)
		if err != nil {
			return
		}
		for _, j := range jobs {
			q.Put(j)
		}
		if got := len(order(q, noon)); got != len(jobs) {
			t.Errorf("%d of %d jobs came out", got, len(jobs))
		}
	})
}
