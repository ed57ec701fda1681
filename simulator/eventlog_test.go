package simulator

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shortStory is one replica, little traffic and a job of a few lines.
func shortScenario() Setup {
	profile, _ := engine.ProfileNamed("llama-70b-a100")
	s := Setup{Scenario: scenario.Default(), Profile: profile, Seed: 1, Policy: daemon()}
	fixed(3)(&s)
	s.Scenario.Name, s.Scenario.Horizon = "short", 3*time.Minute
	s.Scenario.Pool.Profile, s.Scenario.Pool.Replicas = profile.Name, 1
	s.Scenario.Interactive.Generator, s.Scenario.Interactive.Rate = "conversation", 0.2
	s.Scenario.Jobs = []scenario.Job{{Name: "night", Kind: "bal", At: 30 * time.Second, Lines: 12,
		Window: time.Minute}}
	return s
}

func encodeJSON(t *testing.T, r Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEventLog(t *testing.T) {
	const golden = "testdata/short.log"
	s := shortScenario()
	var got bytes.Buffer
	s.Outputs.Events = &got
	watched := result(t, s)
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("event log (-want +got), -update rewrites it:\n%s", diff)
	}
	s.Outputs = Outputs{}
	if diff := cmp.Diff(encodeJSON(t, result(t, s)), encodeJSON(t, watched)); diff != "" {
		t.Errorf("watching has changed the run (-not watched +watched):\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	s := shortScenario()
	var got bytes.Buffer
	s.Outputs.Explain, s.Outputs.Moment = &got, 40*time.Second
	result(t, s)
	for _, want := range []string{
		"40s into the run, the pool model carries 3 batch lines, and may carry 3.\n" +
			"runner_limit: The configured limit of lines per runner is reached. Raise the limit " +
			"of the policy, if engines can carry more.\n",
		"replica-0  3      3        -          -            ", "\nJob night has ",
		"due at 1m30s.", "finished night/",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the explanation lacks %q:\n%s", want, got.String())
		}
	}
	for line := range strings.Lines(got.String()) {
		if at, err := strconv.ParseFloat(strings.TrimSpace(line[:min(10, len(line))]),
			64); err == nil && (at < 35 || at > 45) {
			t.Errorf("an event outside the window: %s", line)
		}
	}
}

func TestTimeline(t *testing.T) {
	s := shortScenario()
	s.Outputs.Timeline = true
	r := result(t, s)
	timeline := r.Timeline
	if timeline == nil || len(timeline.At) != 18 || timeline.At[17] != 180 {
		t.Fatalf("3 minutes are 18 samples, got %+v", timeline)
	}
	sum, most := 0.0, 0.0
	for i := range timeline.At {
		sum += timeline.Harvest[i] * timeline.Every
		most = max(most, timeline.InFlight[i])
	}
	if got, want := int64(sum+0.5), r.Batch.Useful; got != want {
		t.Errorf("the harvest of all samples is %d tokens, that of the run %d", got, want)
	}
	if most != 3 || timeline.Allowance[17] != 3 {
		t.Errorf("at most %v lines in flight, %v allowed at the end, want 3 and 3", most,
			timeline.Allowance[17])
	}
	s.Outputs = Outputs{}
	r.Timeline = nil
	if diff := cmp.Diff(encodeJSON(t, result(t, s)), encodeJSON(t, r)); diff != "" {
		t.Errorf("a timeline has changed the run (-without +with):\n%s", diff)
	}
}

func TestTimelineStaysSmall(t *testing.T) {
	for _, test := range []struct{ horizon, step time.Duration }{
		{time.Minute, 10 * time.Second}, {2 * time.Hour, 10 * time.Second},
		{2*time.Hour + time.Second, 20 * time.Second}, {24 * time.Hour, 2 * time.Minute},
		{31 * 24 * time.Hour, 62 * time.Minute},
	} {
		if got := timelineStepFor(test.horizon); got != test.step {
			t.Errorf("step of %s is %s, want %s", test.horizon, got, test.step)
		}
	}
}
