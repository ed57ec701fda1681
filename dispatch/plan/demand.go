package plan

import (
	"cmp"
	"slices"
	"time"
)

// Demand is the work left of a job, for capacity planning.
type Demand struct {
	Key              JobKey
	Tenant           string
	Created, StartBy time.Time // StartBy zero: started, or not required
	Deadline         time.Time
	Paused           bool
	// Pools are those that the job may use, as those of its batch.
	Pools []string
	// Lines counts the lines left, those in flight included. Work is the expected engine time that
	// they take, in milliseconds by Config.Cost.
	Lines int
	Work  float64
	// Least is a lower bound of Work, from the lengths of answered lines and of those in flight.
	// Before any are known it is the time of the prompts.
	Least float64
	// Most is the work if lines are as long as an unseen job's may be, and MaxOutput their output
	// tokens. They approach Work and Output until 50 lines are answered.
	Most, MaxOutput float64
	// Prompt and Output are the mean tokens of a line. Output is an estimate.
	Prompt, Output float64
	// Longest is the number of tokens of the job's longest answer so far. Its last lines may take
	// as long.
	Longest int
	// Answered is the number of the job's answers that the estimate of Output uses, at most 5000.
	// InFlight counts the lines in flight.
	Answered, InFlight int
}

// Demand lists the jobs that have lines left, the earliest deadline first, those without one last.
func (p *Planner) Demand() []Demand {
	all := p.demand()
	SortDemand(all)
	return all
}

// demand lists the jobs that have lines left, in any order.
func (p *Planner) demand() []Demand {
	p.updateLengths()
	all := make([]Demand, 0, len(p.jobs))
	for _, j := range p.jobs {
		if j.lines == 0 {
			continue
		}
		all = append(all, p.demandOf(j))
	}
	return all
}

func (p *Planner) demandOf(j *job) Demand {
	b := &j.batch.Batch
	most := p.maxOutput(j)
	d := Demand{
		Key: j.key, Tenant: b.Tenant, Created: b.Created, StartBy: b.StartBy,
		Deadline: b.Deadline, Paused: b.Paused, Pools: b.Pools,
		Lines: j.lines, Work: p.workLeft(j), Least: p.minWork(j), Prompt: j.promptMean,
		Output: p.expectOutput(j, j.limitMean), Longest: j.longest, Answered: j.output.seen,
		InFlight: j.inFlight, MaxOutput: most,
		Most: float64(j.lines) * p.cfg.Cost.Work(j.promptMean, most),
	}
	if j.batch.begun {
		d.StartBy = time.Time{}
	}
	return d
}

// Estimate returns the demand that a batch would have if it were added now, in the order of its
// models. It changes nothing.
func (p *Planner) Estimate(b Batch) (all []Demand) {
	state := &batchState{Batch: b}
	for _, m := range b.Models {
		if m.Lines > 0 {
			all = append(all, p.demandOf(p.newJob(state, m)))
		}
	}
	return all
}

// SortDemand puts jobs in the order of Planner.Demand.
func SortDemand(jobs []Demand) {
	slices.SortFunc(jobs, func(a, b Demand) int {
		if a.Deadline.IsZero() != b.Deadline.IsZero() {
			if a.Deadline.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Key.Batch, b.Key.Batch),
			cmp.Compare(a.Key.Model, b.Key.Model))
	})
}
