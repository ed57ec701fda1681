package scheduler_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/scheduler/schedulertest"
)

var noon = schedulertest.Noon

// configOf is the default configuration under the named policy.
func configOf(policy string) scheduler.Config {
	cfg := scheduler.DefaultConfig()
	cfg.Policy = policy
	cfg.Expression = "latest_start_s - 3600 * priority " +
		"- (tenant endsWith '-1' ? 600 : 0) + min(work, lines) / 1e6"
	return cfg
}

func TestPolicies(t *testing.T) {
	for _, name := range scheduler.Policies() {
		t.Run(name, func(t *testing.T) { schedulertest.TestPolicy(t, configOf(name)) })
	}
}

func TestPolicyOrder(t *testing.T) {
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	tests := map[string]struct {
		policy        string
		first, second scheduler.Job
	}{
		"edf: earlier deadline": {"edf", scheduler.Job{Deadline: hour(2)},
			scheduler.Job{Deadline: hour(3), Work: 1e9}},
		"edf: a deadline before none": {"edf", scheduler.Job{Deadline: hour(900)},
			scheduler.Job{}},
		"edf: start time counts": {"edf", scheduler.Job{Deadline: hour(9),
			StartBy: hour(1)}, scheduler.Job{Deadline: hour(2)}},
		"slack: more work starts earlier": {"slack", scheduler.Job{Deadline: hour(3),
			Work: 1e7, Rate: 1000}, scheduler.Job{Deadline: hour(2), Rate: 1000}},
		"slack: a slower rate starts earlier": {"slack", scheduler.Job{Deadline: hour(3),
			Work: 1e6, Rate: 100}, scheduler.Job{Deadline: hour(3), Work: 1e6, Rate: 1000}},
		"slack: unknown rate is the assumed": {"slack", scheduler.Job{Deadline: hour(3),
			Work: 1e6}, scheduler.Job{Deadline: hour(3), Work: 1e6, Rate: 501}},
		"slack: start time counts": {"slack", scheduler.Job{StartBy: hour(1)},
			scheduler.Job{Deadline: hour(2)}},
		"fifo: older": {"fifo", scheduler.Job{Created: hour(1)},
			scheduler.Job{Created: hour(2), Deadline: hour(1), Priority: 9}},
		"priority: higher": {"priority", scheduler.Job{Priority: 1},
			scheduler.Job{Priority: 0, Deadline: hour(1)}},
		"priority: negative is lower": {"priority", scheduler.Job{},
			scheduler.Job{Priority: -1, Deadline: hour(1)}},
		"priority: then deadline": {"priority",
			scheduler.Job{Priority: 3, Deadline: hour(2)},
			scheduler.Job{Priority: 3, Deadline: hour(3)}},
		"priority: deadlines a second apart": {"priority", scheduler.Job{Priority: 1 << 20,
			Deadline: hour(2)}, scheduler.Job{Priority: 1 << 20, Deadline: hour(2).Add(
			time.Second)}},
		"priority: extremes differ": {"priority", scheduler.Job{Priority: math.MaxInt},
			scheduler.Job{Priority: math.MinInt, Deadline: hour(1)}},
		"sjf: less work": {"sjf", scheduler.Job{Work: 10, Lines: 9},
			scheduler.Job{Work: 11, Lines: 1, Deadline: hour(1)}},
		"expression: as the operator has it": {"expression", scheduler.Job{Deadline: hour(3),
			Priority: 2}, scheduler.Job{Deadline: hour(2)}},
		"expression: none is infinitely late": {"expression", scheduler.Job{Deadline: hour(300)},
			scheduler.Job{Priority: 5}},
		"expression: text fields can be asked": {"expression", scheduler.Job{Deadline: hour(3),
			Tenant: "x-1"}, scheduler.Job{Deadline: hour(3), Tenant: "x-2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			policy, err := scheduler.NewPolicy(test.policy, configOf(test.policy))
			if err != nil {
				t.Fatal(err)
			}
			if first, second := policy.Rank(test.first), policy.Rank(test.second); first >= second {
				t.Errorf("ranks %v and %v, want the first lower", first, second)
			}
		})
	}
}

func TestExpressionIsCheckedAtStart(t *testing.T) {
	for source, complaint := range map[string]string{
		"":                             "is empty",
		"deadline_s -":                 "unexpected token",
		"deadlin_s":                    "unknown name deadlin_s",
		"tenant":                       "expected float64, but got string",
		"priority > 3":                 "expected float64, but got bool",
		"now().Unix()":                 "unknown name now",
		"date('2026-01-01').Unix()":    "unknown name date",
		"duration('1h').Seconds()":     "unknown name duration",
		"[1, 'a'][priority]":           "try expression",
		"1 % lines":                    "divide by zero", // a job may have no lines
		"fromJSON('1')":                "unknown name fromJSON",
		"nil":                          "expected float64",
		"has_deadline ? tenant : 1":    "try expression",
		"deadline_s + tenant":          "invalid operation",
		"priority == 1 ? 'a' : 'b'":    "expected float64",
		"let x = deadline_s; tenant":   "expected float64",
		"created_s; priority; tenant ": "expected float64",
	} {
		t.Run(source, func(t *testing.T) {
			cfg := scheduler.DefaultConfig()
			cfg.Policy, cfg.Expression = "expression", source
			err := cfg.Validate()
			if err == nil || !strings.Contains(err.Error(), complaint) {
				t.Errorf("got %v, want a complaint with %q", err, complaint)
			}
		})
	}
}

func TestExpressionMixesWholeAndBrokenNumbers(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Policy, cfg.Expression = "expression", "has_deadline ? deadline_s : 0"
	policy, err := scheduler.NewPolicy("expression", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if rank := policy.Rank(scheduler.Job{}); rank != 0 {
		t.Errorf("rank %v, want 0", rank)
	}
}

func TestUnrankedJobsGoLastAndAreReported(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Policy, cfg.Expression = "expression",
		"priority == 1 ? deadline_s - start_by_s : priority == 2 ? int(tenant) : lines"
	q := newQueue(t, cfg)
	q.Put(scheduler.Job{ID: "a", Priority: 1})              // Inf - Inf
	q.Put(scheduler.Job{ID: "b", Priority: 2, Tenant: "x"}) // no number in there
	for id, want := range map[string]string{"a": "not a number", "b": "queue default: policy " +
		"expression: run expression: "} {
		if err := q.Fault(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", id, err, want)
		}
	}
	q.Park("b")
	q.Put(scheduler.Job{ID: "c", Lines: 1 << 40})
	q.Park("a")
	q.Unpark("a")
	if rank := q.Snapshot(noon)[0]; rank.Job.ID != "c" {
		t.Errorf("first is %s, want c", rank.Job.ID)
	}
	q.Put(scheduler.Job{ID: "b", Priority: 3, Tenant: "x", Lines: 1})
	for _, id := range []string{"b", "c", "unknown"} {
		if err := q.Fault(id); err != nil {
			t.Errorf("%s: got %v, want none", id, err)
		}
	}
}

func TestUnknownNamesNameTheNearest(t *testing.T) {
	_, err := scheduler.NewPolicy("slak", scheduler.DefaultConfig())
	if err == nil || !strings.Contains(err.Error(), `did you mean "slack"`) ||
		!strings.Contains(err.Error(), "edf, expression, fifo") {
		t.Errorf("got %v, want the nearest and all names", err)
	}
	_, err = scheduler.NewArbiter("wheighted", scheduler.DefaultConfig())
	if err == nil || !strings.Contains(err.Error(), `did you mean "weighted"`) {
		t.Errorf("got %v, want the nearest", err)
	}
}

func newQueue(t testing.TB, cfg scheduler.Config) *scheduler.Queue {
	t.Helper()
	q, err := scheduler.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPriorityBreaksTies(t *testing.T) {
	for _, policy := range []string{"slack", "edf", "fifo", "sjf", "priority", "most_lines"} {
		q := newQueue(t, configOf(policy))
		q.Put(scheduler.Job{ID: "a", Created: noon})
		q.Put(scheduler.Job{ID: "b", Priority: 1, Created: noon})
		if id, _ := q.Next(noon); id != "b" {
			t.Errorf("%s: first is %s, want b, which has priority 1", policy, id)
		}
	}
}
