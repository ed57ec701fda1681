package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The counted gaps are those between the tokens that the reports list, at their exact lengths,
// whatever is preempted, aborted or cut short.
func TestTokenGapsAreThoseOfTheReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tight(t)
		c.MaxRun = rapid.SampledFrom([]int{1, 7, 64}).Draw(t, "run")
		e, err := New(c, rand.New(rand.NewPCG(1, 0)))
		if err != nil {
			t.Fatal(err)
		}
		var want TokenGaps
		last := map[ID]time.Time{}
		onIteration := func(it *Iteration) {
			at := it.Start
			for _, step := range it.Steps {
				at = at.Add(step)
				for _, id := range it.Produced {
					if before, known := last[id]; known {
						want.add(1, at.Sub(before))
					}
					last[id] = at
				}
			}
		}
		feed(t, e, events(t, e.MaxModelLen()), onIteration, func(time.Time) {})
		if diff := cmp.Diff(want, e.TokenGaps(epoch)); diff != "" {
			t.Fatalf("counted gaps differ from the reports' (-reports +counted):\n%s", diff)
		}
	})
}

// A snapshot in the middle of a run has the gaps of the iterations that have ended.
func TestTokenGapsInARun(t *testing.T) {
	e := build(t, small(func(c *Config) { c.MaxRun = 64 }), 1)
	submit(t, e, epoch, Request{ID: 1, Prompt: 20, Output: 11})
	e.Advance(epoch, func(*Iteration) {}) // 30 ms for the prompt, then ten times 11 ms
	at := epoch.Add(30*time.Millisecond + 4*11*time.Millisecond + time.Millisecond)
	e.Advance(at, func(*Iteration) {})
	want := TokenGaps{Count: 4, Time: 44 * time.Millisecond}
	want.Buckets[1] = 4 // 10 to 25 ms
	if diff := cmp.Diff(want, e.TokenGaps(at)); diff != "" {
		t.Errorf("in the run (-want +got):\n%s", diff)
	}
}

func TestLengthsOfFinishedRequests(t *testing.T) {
	e := build(t, small(), 1)
	submit(t, e, epoch, Request{ID: 1, Prompt: 20, Output: 11}, Request{ID: 2, Prompt: 21,
		Output: 1}, Request{ID: 3, Prompt: 5000, Output: 100})
	e.Advance(epoch.Add(time.Second), func(*Iteration) {})
	e.Abort(epoch.Add(time.Second), 3)
	e.Advance(epoch.Add(time.Hour), func(*Iteration) {})
	// The edges end with the context length, 10,000.
	if diff := cmp.Diff(Lengths{
		Bounds: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000},
		Counts: []uint64{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0},
	}, e.PromptLengths()); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		e.AnswerLengths().Counts); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
