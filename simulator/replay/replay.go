package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Builder reads a recording. Its zero value is ready to use.
type Builder struct {
	// Summary is the summary of the recording.
	Summary recording.Summary

	serving    map[int]bool
	maxServing int // most runners that served at once
	jobs       []recordedJob
	byID       map[int]int // index of jobs
	runners    map[int]*runner
	ended      []*runner // of earlier starts of the daemon
	restarts   int
}

// recordedJob is a job and the sizes of its answered lines.
type recordedJob struct {
	recording.Job
	name  string
	at    float64
	sizes [][2]int // prompt and output tokens
}

// Add reads the next entry.
func (b *Builder) Add(e recording.Entry) {
	b.Summary.Add(e)
	if b.serving == nil {
		b.serving, b.byID, b.runners = map[int]bool{}, map[int]int{}, map[int]*runner{}
	}
	switch {
	case e.Runner != nil:
		delete(b.serving, e.Runner.ID)
		if len(e.Runner.Models) > 0 {
			b.serving[e.Runner.ID] = true
		}
		b.maxServing = max(b.maxServing, len(b.serving))
	case e.Job != nil:
		b.byID[e.Job.ID] = len(b.jobs)
		name := "job-" + strconv.Itoa(e.Job.ID)
		if b.restarts > 0 {
			name += fmt.Sprintf("-start-%d", b.restarts+1)
		}
		b.jobs = append(b.jobs, recordedJob{Job: *e.Job, name: name, at: e.At})
	case e.Line != nil && e.Line.End == "succeeded":
		if i, known := b.byID[e.Line.Job]; known {
			b.jobs[i].sizes = append(b.jobs[i].sizes, [2]int{e.Line.Prompt, e.Line.Output})
		}
		b.runner(e.Line.Runner).addLine(e.At, e.Line)
	case e.Reading != nil && e.Reading.Source == "metrics":
		b.runner(e.Reading.Runner).addReading(e.Reading)
	case e.Latencies != nil && e.Latencies.Runner > 0:
		b.runner(e.Latencies.Runner).addHistogram(e.At, e.Latencies.TTFT)
	}
}

// Restart begins the entries of the daemon's next start, in which runners and jobs have other
// numbers. Lines of earlier jobs that have no answer come again in jobs of that start.
func (b *Builder) Restart() {
	for _, id := range slices.Sorted(maps.Keys(b.runners)) {
		b.ended = append(b.ended, b.runners[id])
	}
	for i := range b.jobs {
		b.jobs[i].Lines = min(b.jobs[i].Lines, len(b.jobs[i].sizes))
	}
	b.jobs = slices.DeleteFunc(b.jobs, func(j recordedJob) bool { return j.Lines == 0 })
	b.serving, b.byID, b.runners = nil, nil, nil
	b.restarts++
}

func (b *Builder) runner(id int) *runner {
	if b.runners[id] == nil {
		b.runners[id] = &runner{}
	}
	return b.runners[id]
}

// Runners returns the largest number of runners that served at once.
func (b *Builder) Runners() int { return max(1, b.maxServing) }

// Length returns the recorded time.
func (b *Builder) Length() time.Duration { return b.since(b.Summary.To) }

func (b *Builder) since(at float64) time.Duration {
	return time.Duration((at - b.Summary.From) * float64(time.Second))
}

// minLength is the shortest recording that can be simulated: a run's first and last minute are not
// counted.
const minLength = 3 * time.Minute

// Check reports why the recording can't be simulated.
func (b *Builder) Check() error {
	if length := b.Length(); length < minLength {
		return fmt.Errorf("the recording spans %s; a comparison takes at least %s",
			length.Round(time.Second), minLength)
	}
	if len(b.runners)+len(b.ended) == 0 {
		return errors.New(
			"the recording has neither metrics of runners nor lines: nothing to compare")
	}
	return nil
}

// Jobs returns the recorded jobs, with lines as large as those answered. A job without answered
// lines gets the sizes of the others.
func (b *Builder) Jobs() []workload.Job {
	var all [][2]int
	for _, j := range b.jobs {
		all = append(all, j.sizes...)
	}
	var jobs []workload.Job
	for _, j := range b.jobs {
		sizes := j.sizes
		if len(sizes) == 0 {
			sizes = all
		}
		if len(sizes) == 0 {
			continue // its lines have no known size, and none was answered
		}
		lines := j.Lines
		if lines > maxCountedLines {
			lines = workload.Backlog
		}
		jobs = append(jobs, workload.Job{
			Name: j.name, At: b.since(j.at), Window: time.Duration(
				max(0, j.Deadline) * float64(time.Second)), Lines: lines,
			Kind: kindOf(sizes),
		})
	}
	return jobs
}

// maxCountedLines is more lines than a recording can answer. A larger job is replayed without end.
const maxCountedLines = 1_000_000

// maxParts is the number of lines that represent all of a job's.
const maxParts = 256

// kindOf draws lines from some of the recorded ones with equal weight, so that prompts and answers
// stay paired.
func kindOf(sizes [][2]int) workload.Kind {
	k := workload.Kind{Name: "recorded"}
	step := (len(sizes) + maxParts - 1) / maxParts
	for i := 0; i < len(sizes); i += step {
		k.Parts = append(k.Parts, workload.Part{
			Weight: 1, Input: workload.Length{Median: float64(max(1, sizes[i][0]))},
			Output: workload.Length{Median: float64(max(1, sizes[i][1]))},
		})
	}
	return k
}
