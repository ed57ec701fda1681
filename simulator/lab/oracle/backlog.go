package oracle

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// backlog returns the lines of a scenario's jobs one by one. It chooses the job with the earliest
// deadline of those submitted so far, and returns its lines in order.
type backlog struct {
	model    costmodel.Model
	jobs     []*jobLines // in order of submission
	horizon  time.Duration
	useful   float64
	work     float64 // milliseconds
	finished int
}

// jobLines are the remaining lines of a job.
type jobLines struct {
	*workload.Job
	due  time.Duration // the horizon if the job has no deadline
	next int           // number of the next line
	// lines before next that were too long to end in time when they were considered
	skipped []int
}

// line is a line in the engine. The length of its answer is known to the oracle.
type line struct {
	prompt, output int
	prefix         []engine.Hash
	computed       int // tokens of the prompt
	produced       int
}

func newBacklog(s simulator.Setup) (*backlog, error) {
	jobs, err := s.Jobs()
	if err != nil {
		return nil, err
	}
	b := &backlog{model: s.Profile.CostModel, horizon: s.Scenario.Horizon}
	for {
		j, ok := jobs.Next()
		if !ok {
			return b, nil
		}
		due, some := j.Deadline()
		if !some || due > b.horizon {
			due = b.horizon
		}
		b.jobs = append(b.jobs, &jobLines{Job: j, due: due})
	}
}

// maxSkipped is the number of lines of a job that are considered for one that ends in time.
const maxSkipped = 64

// take returns the next line that ends in time if each of its tokens takes pace.
func (b *backlog) take(now, pace time.Duration) *line {
	var first *jobLines
	for _, j := range b.jobs {
		if j.At > now {
			break
		}
		if now < j.due && (j.next < j.Lines || len(j.skipped) > 0) &&
			(first == nil || j.due < first.due) {
			first = j
		}
	}
	if first == nil {
		return nil
	}
	return first.take(first.due-now, pace)
}

func (s *jobLines) take(left, pace time.Duration) *line {
	fits := func(r workload.Request) bool { return time.Duration(r.Output)*pace <= left }
	for i, number := range s.skipped {
		if r := s.Line(number); fits(r) {
			s.skipped = append(s.skipped[:i], s.skipped[i+1:]...)
			return newLine(r)
		}
	}
	for s.next < s.Lines && len(s.skipped) < maxSkipped {
		r := s.Line(s.next)
		s.next++
		if fits(r) {
			return newLine(r)
		}
		s.skipped = append(s.skipped, s.next-1)
	}
	return nil
}

func newLine(r workload.Request) *line {
	l := &line{prompt: r.Input, output: r.Output}
	for _, h := range r.Blocks(nil, engine.BlockSize) {
		l.prefix = append(l.prefix, engine.Hash(h))
	}
	return l
}

// context returns the number of tokens of the line that are known.
func (l *line) context() int { return l.prompt + l.produced }

// exhausted reports whether every line of every job has been answered.
func (b *backlog) exhausted() bool {
	lines := 0
	for _, j := range b.jobs {
		if j.Lines == workload.Backlog {
			return false
		}
		lines += j.Lines
	}
	return b.finished == lines
}

// done counts a line as answered.
func (b *backlog) done(l *line) {
	b.finished++
	b.useful += float64(l.prompt + l.output)
	b.work += b.model.LineWork(l.prompt, l.output)
}
