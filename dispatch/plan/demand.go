package plan

import (
	"cmp"
	"slices"
	"time"
)

// Demand is what is left of a job, for those who plan capacity.
type Demand struct {
	Key              JobKey
	Tenant           string
	Created, StartBy time.Time // StartBy zero: begun, or no promise
	Deadline         time.Time
	Paused           bool
	// Lines left, those under way included, and the engine time they are expected to take, in
	// Config.Cost's milliseconds.
	Lines int
	Work  float64
	// Least is what they take at the least, as far as lines answered and under way have shown: what
	// grows only with what is seen, and before anything is, the time of the prompts.
	Least float64
	// Prompt and Output are the mean tokens of a line, the second as far as learnt.
	Prompt, Output float64
	// Longest is the tokens of the job's longest answer so far: its last lines may take as long.
	Longest int
	// Answered is how many of the job's own answers that was learnt from, 5000 at most; InFlight
	// how many lines are under way.
	Answered, InFlight int
}

// Demand lists the jobs that have lines left, the earliest deadline first; those without one come
// last.
func (p *Planner) Demand() []Demand {
	p.lookAtAges()
	var all []Demand
	for _, j := range p.byID {
		if j.lines == 0 {
			continue
		}
		b := &j.batch.Batch
		d := Demand{
			Key: j.key, Tenant: b.Tenant, Created: b.Created, StartBy: b.StartBy,
			Deadline: b.Deadline, Paused: b.Paused,
			Lines: j.lines, Work: p.workLeft(j), Least: p.leastWork(j), Prompt: j.promptMean,
			Output: p.expectOutput(j, j.limitMean), Longest: j.longest, Answered: j.output.seen,
			InFlight: j.inFlight,
		}
		if j.batch.begun {
			d.StartBy = time.Time{}
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Demand) int {
		if a.Deadline.IsZero() != b.Deadline.IsZero() {
			if a.Deadline.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Key.Batch, b.Key.Batch),
			cmp.Compare(a.Key.Model, b.Key.Model))
	})
	return all
}
