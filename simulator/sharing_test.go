package simulator

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// equalLines is a job whose lines take the tiny engine a third of a second, eight at a time.
func equalLines(name, tenant string, lines int, window time.Duration) scenario.Job {
	return scenario.Job{Name: name, Tenant: tenant, Lines: lines, Window: window,
		Input: scenario.Length{Median: 10}, Output: scenario.Length{Median: 20}}
}

// A batch of ten lines ends in about the time of its answers beside large ones of its tenant and of
// another one. The tenants share equally.
func TestASmallBatchDoesNotWaitForLargeOnes(t *testing.T) {
	small := equalLines("small", "a", 10, 24*time.Hour)
	small.At = 3 * time.Minute
	s := tiny(t, "0,1,1\n600,1,1\n", equalLines("large", "a", 50_000, 24*time.Hour),
		equalLines("also-large", "a", 50_000, 24*time.Hour),
		equalLines("other", "b", 50_000, 24*time.Hour), small)
	fixed(8)(&s)
	r, err := RunBatch(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]float64{}
	for _, j := range r.Jobs {
		done[j.Name] = float64(j.Done)
		if took := j.Finished - j.Submitted; j.Name == "small" &&
			(j.Outcome != Finished || took > 4) {
			t.Errorf("the small batch is %s after %.1f seconds, want 4 at most", j.Outcome, took)
		}
	}
	a, b := done["large"]+done["also-large"]+done["small"], done["other"]
	if math.Abs(a-b) > 0.4*(a+b) { // a turn is two minutes of five
		t.Errorf("the tenants got %v and %v lines, want about the same", a, b)
	}
}

// Two batches that are due together, and need most of the time until then, meet their deadlines
// beside one that is due in a day, though each alone would have time left for long.
func TestBatchesDueTogetherMeetTheirDeadlines(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it judges a policy by hours of simulation")
	}
	s := bundled(t, "s9-deadlines.yaml", streamed)
	s.Scenario.Horizon = 95 * time.Minute
	s.Scenario.Jobs = []scenario.Job{
		{Name: "archive", Kind: "bal", At: 5 * time.Minute, Window: 24 * time.Hour, Lines: 50_000},
		{Name: "left", Kind: "bal", At: 30 * time.Minute, Window: time.Hour, Lines: 15_000},
		{Name: "right", Kind: "bal", At: 30 * time.Minute, Window: time.Hour, Lines: 15_000},
	}
	r, err := RunBatch(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range r.Jobs[1:] {
		if j.Outcome != Finished || j.Finished > j.Deadline {
			t.Errorf("%s is %s with %d of %d lines", j.Name, j.Outcome, j.Done, j.Lines)
		}
	}
}
