package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Inside is batch work that the engines themselves fit in, for comparison: no
// policy of ours takes part. It is asked for each replica's filler once.
type Inside func(Host) engine.Filler

// Host is a replica that is to be filled.
type Host struct {
	Replica string
	Engine  engine.Config
	// Promise is what the user of a request inside was promised.
	Promise func(engine.ID) scenario.SLO
}

// RunInside tells the scenario with such work and says what the users got.
func RunInside(s Setup, work Inside, progress Progress) (Interactive, error) {
	if err := s.Check(); err != nil {
		return Interactive{}, err
	}
	s.inside = work
	p, _, err := tell(s, false, progress)
	if err != nil {
		return Interactive{}, err
	}
	return p.users.report(), nil
}

// Jobs are the scenario's, told anew with each call.
func (s Setup) Jobs() (workload.Jobs, error) { return s.jobs() }

// Traffic is the interactive arrivals, told anew with each call.
func (s Setup) Traffic() (workload.Stream, error) { return s.arrivals() }

// Engine is what each replica of the first pool is.
func (s Setup) Engine() engine.Config { return s.engineConfig() }

// BatchEngine is what each replica of another pool is.
func (s Setup) BatchEngine(p scenario.BatchPool) engine.Config { return s.batchEngine(p) }

// Epoch is when every story begins.
func Epoch() time.Time { return epoch }

// WorkOf is the cost of a line to an engine in milliseconds of iteration, as in
// Batch.Work.
func WorkOf(l engine.Law, input, output int) float64 { return workOf(l, input, output) }

// LateByMinute is how many interactive requests missed a promise or were refused,
// by the minute of their arrival after the first edge.
func (r Result) LateByMinute() []int { return lateByMinute(r.minutes) }

// LateByMinute is the same of the day without batch work.
func (q Quiet) LateByMinute() []int { return lateByMinute(q.minutes) }

func lateByMinute(minutes []minute) []int {
	late := make([]int, len(minutes))
	for i, m := range minutes {
		late[i] = m.judged - m.attained
	}
	return late
}

// fill puts the filler into an engine, if there is one.
func (p *plant) fill(name string, cfg engine.Config, e *engine.Engine) {
	if p.setup.inside == nil {
		return
	}
	e.FillWith(p.setup.inside(Host{Replica: name, Engine: cfg,
		Promise: func(id engine.ID) scenario.SLO {
			return p.users.classes[p.flights[id].class].slo
		}}))
}

// wakeInside lets engines that rest look for work when a job comes.
func (p *plant) wakeInside() error {
	jobs, err := p.setup.jobs()
	if err != nil {
		return err
	}
	for {
		j, ok := jobs.Next()
		if !ok {
			return nil
		}
		p.agenda.put(epoch.Add(j.At), func() {
			for _, x := range p.pools {
				for _, r := range x.replicas {
					r.wakeInside()
				}
			}
		})
	}
}

// wakeInside lets the engine look for work, once it serves.
func (r *replica) wakeInside() {
	if r.phase == ready {
		r.advance()
	}
}
