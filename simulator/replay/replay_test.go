package replay

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/workload"
)

// record adds ten minutes on two runners: 2 interactive requests a second on the first (5
// in the second half), prompts of 300 tokens and answers of 100, and a job of ours on both.
func record(b *Builder) {
	nan := recording.Number(math.NaN())
	var requests, prompt, output [3]float64
	add := func(at float64, e recording.Entry) { e.At = at; b.Add(e) }
	add(0, recording.Entry{Runner: &recording.Runner{ID: 1, Models: []int{1}}})
	add(0, recording.Entry{Runner: &recording.Runner{ID: 2, Models: []int{1}}})
	add(5, recording.Entry{Job: &recording.Job{ID: 7, Model: 1, Lines: 1000, Deadline: 3600}})
	add(5, recording.Entry{Job: &recording.Job{ID: 8, Model: 1, Lines: 10}}) // never gets its turn
	for second := 1.0; second <= 600; second++ {
		rate := 2.0
		if second > 300 {
			rate = 5
		}
		requests[1], prompt[1], output[1] = requests[1]+rate, prompt[1]+300*rate, output[1]+100*rate
		for runner := 1; runner <= 2; runner++ {
			requests[runner], prompt[runner], output[runner] = requests[runner]+1,
				prompt[runner]+800, output[runner]+50
			add(second, recording.Entry{Line: &recording.Line{
				Job: 7, Runner: runner, End: "succeeded", Took: 1, First: 0.5, Prompt: 800,
				Output: 50}})
			add(second, recording.Entry{Reading: &recording.Reading{
				Source: "metrics", Runner: runner, Age: 0, Running: 3, Waiting: nan,
				PromptTokens: recording.Number(prompt[runner]), OutputTokens: recording.Number(
					output[runner]),
			}})
			if int(second)%10 == 0 {
				add(second, recording.Entry{Latencies: &recording.Latencies{
					Runner: runner, TTFT: recording.Histogram{{1, requests[runner]}, {
						-1, requests[runner]}}}})
			}
		}
	}
}

func TestInteractiveRequestsAreTheRemainder(t *testing.T) {
	var b Builder
	record(&b)
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	if b.Runners() != 2 || b.Length() != 10*time.Minute {
		t.Errorf("%d runners, %v", b.Runners(), b.Length())
	}
	trace, err := b.Traffic(1)
	if err != nil {
		t.Fatal(err)
	}
	var early, late, input, output float64
	for a := range workload.All(trace.Arrivals()) {
		if a.At < 300*time.Second {
			early++
		} else {
			late++
		}
		input, output = input+float64(a.Input), output+float64(a.Output)
	}
	within := func(what string, got, want, share float64) {
		t.Helper()
		if math.Abs(got/want-1) > share {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	within("the first half", early, 580, 0.03)
	within("the second half", late, 1500, 0.03)
	within("the mean prompt", input/(early+late), 300, 0.06)
	within("the mean answer", output/(early+late), 100, 0.06)
	again, _ := b.Traffic(1)
	if again.Len() != trace.Len() || again.Span() != trace.Span() {
		t.Error("the same seed gives other traffic")
	}
}

// Jobs keep the times of the recording, so the requests must keep theirs.
func TestTrafficKeepsTheTimesOfTheRecording(t *testing.T) {
	var b Builder
	record(&b)
	var first []counterSample
	for _, s := range b.runners[1].samples {
		if s.at >= 200 {
			first = append(first, s)
		}
	}
	b.runners[1].samples = first
	trace, err := b.Traffic(1)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := trace.Arrivals().Next()
	if a.At < 200*time.Second || a.At > 205*time.Second || trace.Span() != b.Length() {
		t.Errorf("the first request is at %v of %v, want about 200s of %v", a.At, trace.Span(),
			b.Length())
	}
}

func TestJobsHaveTheirOwnLines(t *testing.T) {
	var b Builder
	record(&b)
	jobs := b.Jobs()
	if len(jobs) != 2 || jobs[0].Name != "job-7" || jobs[0].At != 5*time.Second ||
		jobs[0].Window != time.Hour || jobs[0].Lines != 1000 || jobs[1].Lines != 10 {
		t.Fatalf("got %+v", jobs)
	}
	for _, j := range jobs {
		if len(j.Kind.Parts) == 0 || len(j.Kind.Parts) > maxParts || j.Kind.Validate() != nil {
			t.Errorf("kind %+v", j.Kind)
		}
		if p := j.Kind.Parts[0]; p.Input.Median != 800 || p.Output.Median != 50 {
			t.Errorf("%s: lines of %+v", j.Name, p)
		}
	}
}

func TestRecordingsThatCannotBeReplayed(t *testing.T) {
	var b Builder
	if err := b.Check(); err == nil || !strings.Contains(err.Error(), "at least 3m") {
		t.Errorf("nothing: %v", err)
	}
	b.Add(recording.Entry{At: 0, Runner: &recording.Runner{ID: 1, Models: []int{1}}})
	b.Add(recording.Entry{At: 400, Runner: &recording.Runner{ID: 1}})
	if err := b.Check(); err == nil || !strings.Contains(err.Error(), "nothing to compare") {
		t.Errorf("no figures: %v", err)
	}
	if _, err := b.Traffic(1); err == nil || !strings.Contains(err.Error(), "how many requests") {
		t.Errorf("no counts: %v", err)
	}
	if len(b.Jobs()) != 0 {
		t.Error("jobs of nothing")
	}
}

func TestAPoolWithoutUsersHasNoTraffic(t *testing.T) {
	var b Builder
	record(&b)
	delete(b.runners, 1)
	if trace, err := b.Traffic(1); err != nil || trace != nil {
		t.Errorf("got %v, %v", trace, err)
	}
}
