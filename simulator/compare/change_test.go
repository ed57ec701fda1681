package compare

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

const changeable = plainScenario + `pool: {profile: llama-70b-a100, replicas: 4}
batch_pools:
- {name: spot, replicas: 2}
- {name: night, replicas: 1}
jobs:
- {name: a, kind: bal, at: 1m}
`

func TestChangesOfAScenario(t *testing.T) {
	file := writeScenario(t, filepath.Join(t.TempDir(), "x.yaml"), changeable)
	for text, want := range map[string]struct {
		applied string
		holds   func(c Changed) bool
	}{
		"pool.replicas=5": {"pool.replicas 5 instead of 4",
			func(c Changed) bool { return c.Scenario.Scenario.Pool.Replicas == 5 }},
		"replicas=-1": {"pool.replicas 3 instead of 4",
			func(c Changed) bool { return c.Scenario.Scenario.Pool.Replicas == 3 }},
		"pool.replicas=1.6x": {"pool.replicas 6 instead of 4",
			func(c Changed) bool { return c.Scenario.Scenario.Pool.Replicas == 6 }},
		"rate=1.2x": {"interactive.rate 1.2 instead of 1",
			func(c Changed) bool { return c.Scenario.Scenario.Interactive.Rate == 1.2 }},
		"horizon=+90s": {"horizon 6m30s instead of 5m", func(c Changed) bool {
			return c.Scenario.Scenario.Horizon == 390*time.Second
		}},
		"interactive.slo.ttft=0.5x": {"interactive.slo.ttft 1s instead of 2s",
			func(c Changed) bool {
				return c.Scenario.Scenario.Interactive.SLO.TTFT == time.Second
			}},
		"batch_pools.night.replicas=+2": {"batch_pools.night.replicas 3 instead of 1",
			func(c Changed) bool {
				return c.Scenario.Scenario.BatchPools[1].Replicas == 3 &&
					c.Scenario.Scenario.BatchPools[0].Replicas == 2
			}},
		"batch_pools[0].replicas=1": {"batch_pools[0].replicas 1 instead of 2",
			func(c Changed) bool { return c.Scenario.Scenario.BatchPools[0].Replicas == 1 }},
		"jobs.a.at=2m": {"jobs.a.at 2m instead of 1m",
			func(c Changed) bool { return c.Scenario.Scenario.Jobs[0].At == 2*time.Minute }},
		"pool.profile=llama-8b-a100": {
			"pool.profile llama-8b-a100 instead of llama-70b-a100",
			func(c Changed) bool {
				want, _ := engine.ProfileNamed("llama-8b-a100")
				return c.Profile == want
			}},
	} {
		s, err := openScenario(file, Trace{})
		if err != nil {
			t.Fatal(err)
		}
		changes, err := ParseChanges([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Changed(changes)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := inWords(c.Applied); got != want.applied || !want.holds(c) {
			t.Errorf("%s: %q, want %q; %+v", text, got, want.applied, c.Scenario.Scenario)
		}
		if s.Scenario.Pool.Replicas != 4 || s.Scenario.BatchPools[1].Replicas != 1 ||
			s.Scenario.Jobs[0].At != time.Minute {
			t.Fatalf("%s changes the scenario as given", text)
		}
	}
}

// A rate of 0 is the generator's own.
func TestARateRelativeToTheGenerators(t *testing.T) {
	file := writeScenario(t, filepath.Join(t.TempDir(), "x.yaml"), "name: x\n"+
		"pool: {profile: llama-70b-a100, replicas: 4}\ninteractive: {generator: conversation}\n")
	s, err := openScenario(file, Trace{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Changed([]Change{{"interactive.rate", "2x"}})
	if want := "interactive.rate 11.06 instead of 5.53"; err != nil ||
		inWords(c.Applied) != want {
		t.Errorf("got %q, %v; want %q", inWords(c.Applied), err, want)
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	file := writeScenario(t, filepath.Join(t.TempDir(), "x.yaml"), changeable)
	s, err := openScenario(file, Trace{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"pool.replica=5":               "did you mean pool.replicas?",
		"pools.chat.max=5":             "did you mean pool?",
		"batch_pools.spto.replicas=1":  "did you mean batch_pools.spot?",
		"batch_pools.spot.replica=1":   "did you mean batch_pools.spot.replicas?",
		"batch_pools.2.replicas=1":     "it has 2 elements, from 0 on: spot, night",
		"faults.0.at=1m":               "it is empty",
		"pool.replicas=-9":             "pool.replicas is -5, want 0 to 1000",
		"pool.max_seqs=2x":             "it is 0, so 2x of it is nothing; write a value",
		"pool.profile=2x":              "so 2x of it is nothing",
		"horizon=+5":                   "5",
		"pool.profile=llama-70b-a1000": "neither a file nor a bundled profile",
		"pool.replicas=many":           `pool.replicas is "many"`,
		"pool.max_seqs=100000":         "pool.max_seqs",
		"pool.replicas":                "write KEY=VALUE",
		"pool.replicas=":               "write KEY=VALUE",
	} {
		changes, err := ParseChanges([]string{text})
		if err == nil {
			_, err = s.Changed(changes)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "--what-if") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseChanges(t *testing.T) {
	got, err := ParseChanges([]string{"a=1,b.c=[x, y],d=2x", "e=-1"})
	want := []Change{{"a", "1"}, {"b.c", "[x, y]"}, {"d", "2x"}, {"e", "-1"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %q, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}
