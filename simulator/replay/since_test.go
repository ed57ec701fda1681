package replay_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/replay"
)

func runnerEntry(at float64, id int, models ...int) recording.Entry {
	return recording.Entry{At: at, Runner: &recording.Runner{ID: id, Models: models}}
}

func jobEntry(at float64, id, lines int, deadline float64) recording.Entry {
	return recording.Entry{At: at, Job: &recording.Job{ID: id, Model: 1, Lines: lines,
		Deadline: deadline}}
}

func lineEntry(at float64, job int) recording.Entry {
	return recording.Entry{At: at, Line: &recording.Line{Job: job, Runner: 1, End: "succeeded",
		Took: 1, Prompt: 100, Output: 10}}
}

// What was there at the time from which a recording is replayed comes first: the runners, and jobs
// with the lines and the time that they had left.
func TestSinceBeginsWithWhatWasThere(t *testing.T) {
	var got []string
	s := replay.Since{From: 100, Pass: func(e recording.Entry) {
		switch {
		case e.Runner != nil:
			got = append(got, fmt.Sprintf("%v runner %d", e.At, e.Runner.ID))
		case e.Job != nil:
			got = append(got, fmt.Sprintf("%v job %d: %d lines, due in %v", e.At, e.Job.ID,
				e.Job.Lines, e.Job.Deadline))
		case e.Line != nil:
			got = append(got, fmt.Sprintf("%v line of %d", e.At, e.Line.Job))
		}
	}}
	for _, e := range []recording.Entry{
		runnerEntry(0, 1, 1), runnerEntry(0, 2, 1), jobEntry(10, 1, 3, 500), jobEntry(10, 2, 1, 0),
		jobEntry(10, 3, 9, 50), lineEntry(20, 1), lineEntry(30, 2), runnerEntry(40, 2),
		lineEntry(100, 1),
	} {
		s.Add(e)
	}
	want := []string{"100 runner 1", "100 job 1: 2 lines, due in 410", "100 line of 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Runners and jobs of two starts are not the same, though they have the same numbers; lines that
// the first start left are those of the second.
func TestRestartsAreJoined(t *testing.T) {
	var b replay.Builder
	for _, e := range []recording.Entry{runnerEntry(0, 1, 1), runnerEntry(0, 2, 1),
		jobEntry(0, 1, 5, 0), jobEntry(0, 2, 7, 0), lineEntry(50, 1), lineEntry(60, 1)} {
		b.Add(e)
	}
	b.Restart()
	for _, e := range []recording.Entry{runnerEntry(200, 1, 1), jobEntry(200, 1, 3, 0),
		lineEntry(250, 1)} {
		b.Add(e)
	}
	jobs := b.Jobs()
	if len(jobs) != 2 || jobs[0].Name != "job-1" || jobs[0].Lines != 2 ||
		jobs[1].Name != "job-1-start-2" || jobs[1].Lines != 3 {
		t.Errorf("jobs: %d", len(jobs))
		for _, j := range jobs {
			t.Errorf("%s: %d lines", j.Name, j.Lines)
		}
	}
	if b.Runners() != 2 || b.Length().Seconds() != 250 {
		t.Errorf("%d runners, %s", b.Runners(), b.Length())
	}
}
