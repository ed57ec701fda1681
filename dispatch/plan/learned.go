package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Learned is what was learned of a pool, for the planner that takes the place of this one.
type Learned struct {
	ID     string   `json:"-"` // of the pool, as in PoolStatus
	Name   string   `json:",omitempty"`
	Models []string // of the pool, sorted
	// Engines are those of the pool's runners, as in RunnerUp, sorted. What was learned of them is
	// of no use for others.
	Engines []string
	// Policy is the flow-control policy that Flow is of, as flowcontrol.Learner has it.
	Policy string
	Flow   []byte
	// Answers are the lengths of the models' answers, Jobs those of the batches in progress, at
	// most maxJobs.
	Answers map[string]AnswerLengths
	Jobs    []JobAnswers
}

// JobAnswers are the answers of a job.
type JobAnswers struct {
	JobKey
	AnswerLengths
}

// maxJobs limits the jobs whose answers are kept, those with the most lines in flight.
const maxJobs = 100

// AnswerLengths is what is known of the answers of a model, in output tokens.
type AnswerLengths struct {
	Mean    float64
	Answers int     // that the mean is of
	Longest float64 // mean of a job
}

// Recalled is what was learned of a pool, Age before the event.
type Recalled struct {
	Learned
	Age time.Duration
}

// Recall hands over what was learned of pools that have no runner yet.
type Recall struct{ Pools []Recalled }

func (Recall) isEvent() {}

// Forget drops what was learned of the pool with this ID, which is measured anew.
type Forget struct{ Pool string }

func (Forget) isEvent() {}

// recalled is what a pool may take over until its first line starts.
type recalled struct {
	Recalled
	at time.Time // of the event
}

// TakenOver reports what a pool took over of what was learned before. The zero value is a pool of
// which nothing was known.
type TakenOver struct {
	Age time.Duration // of what was taken over
	// Refused is why nothing was taken over; nil: something was.
	Refused error
}

// errOtherEngines is why nothing is taken over while none of the pool's runners is known.
var errOtherEngines = errors.New("it was learned of other engines")

// Learned returns what was learned of the pools so far. It leaves out pools of which nothing is
// known yet.
func (p *Planner) Learned(now time.Time) []Learned {
	var all []Learned
	for _, pool := range p.pools {
		learner, learns := pool.flow.(flowcontrol.Learner)
		if !learns || len(pool.runners) == 0 {
			continue
		}
		flow := learner.Learned(now)
		if flow == nil {
			continue
		}
		l := Learned{ID: pool.id, Name: pool.name, Models: pool.models, Policy: pool.flow.Name(),
			Flow: flow, Answers: map[string]AnswerLengths{}}
		for _, r := range pool.runners {
			l.Engines = append(l.Engines, r.engine)
		}
		slices.Sort(l.Engines)
		l.Engines = slices.Compact(l.Engines)
		for _, m := range pool.models {
			if o := p.outputs[m]; o != nil && o.seen > 0 {
				l.Answers[m] = AnswerLengths{o.mean, o.seen, o.longest}
			}
		}
		l.Jobs = p.jobAnswers(pool)
		all = append(all, l)
	}
	return all
}

// jobAnswers returns what is known of the answers of the pool's jobs.
func (p *Planner) jobAnswers(of *pool) []JobAnswers {
	var answering []*job
	for _, id := range p.jobIDs() {
		if j := p.jobs[id]; j.output.seen > 0 && slices.Contains(j.pools, of) {
			answering = append(answering, j)
		}
	}
	slices.SortStableFunc(answering, func(a, b *job) int { return b.inFlight - a.inFlight })
	var all []JobAnswers
	for _, j := range answering[:min(len(answering), maxJobs)] {
		all = append(all, JobAnswers{j.key, AnswerLengths{Mean: j.output.mean,
			Answers: j.output.seen}})
	}
	return all
}

// recallAnswers gives a new job what is known of its answers.
func (p *Planner) recallAnswers(j *job) {
	for _, known := range p.recalled {
		for _, of := range known.Jobs {
			if of.JobKey == j.key && of.valid() {
				j.output = outputMean{mean: of.Mean, seen: min(of.Answers, outputMemory)}
			}
		}
	}
}

func (a AnswerLengths) valid() bool {
	return a.Mean >= 1 && a.Mean <= maxAnswer && a.Longest >= 0 && a.Longest <= maxAnswer &&
		a.Answers > 0
}

// recall notes what was learned of pools, for when their runners come.
func (p *Planner) recall(now time.Time, ev Recall) {
	p.recalled = nil
	for _, r := range ev.Pools {
		p.recalled = append(p.recalled, &recalled{r, now})
	}
}

// recalledOf returns what was learned of the pool of the runner's name and these models; nil:
// nothing. A runner without a list has the models that batches named, which may be fewer than
// before.
func (p *Planner) recalledOf(models []string, ev RunnerUp) *recalled {
	i := slices.IndexFunc(p.recalled, func(r *recalled) bool {
		// What a fallback has spent does not depend on its models.
		return r.Name == ev.Pool && (slices.Equal(r.Models, models) || ev.Instead != "")
	})
	if i < 0 && ev.Unlisted {
		engines := []string{ev.engine()}
		i = slices.IndexFunc(p.recalled, func(r *recalled) bool {
			return r.Name == ev.Pool && containsAll(r.Models, models) &&
				slices.Equal(r.Engines, engines)
		})
	}
	if i < 0 {
		return nil
	}
	return p.recalled[i]
}

// takeOver lets a new pool take over what was learned of it, once one of its runners has joined of
// which it was learned.
func (p *Planner) takeOver(now time.Time, pool *pool, r *runner) {
	known := pool.recalled
	if known == nil {
		return
	}
	age := known.Age + now.Sub(known.at)
	pool.takenOver = &TakenOver{Age: age, Refused: errOtherEngines}
	if !slices.Contains(known.Engines, r.engine) {
		return
	}
	pool.recalled = nil
	p.takeOverAnswers(pool, known.Answers, age)
	learner, learns := pool.flow.(flowcontrol.Learner)
	if !learns || pool.flow.Name() != known.Policy {
		pool.takenOver.Refused = fmt.Errorf("it was learned by the policy %q", known.Policy)
		return
	}
	pool.takenOver.Refused = learner.Learn(now, known.Flow, age)
	pool.stale = true
}

const (
	// answersHalf is after which time half as many answers count.
	answersHalf = 24 * time.Hour
	// maxAnswer bounds what answers are believed to be long, in tokens.
	maxAnswer = 1e7
)

// takeOverAnswers takes over the lengths of the answers of models that have answered nothing yet.
func (p *Planner) takeOverAnswers(pool *pool, answers map[string]AnswerLengths, age time.Duration) {
	for _, m := range slices.Sorted(maps.Keys(answers)) {
		a := answers[m]
		seen := int(float64(a.Answers) * float64(answersHalf) / float64(answersHalf+max(0, age)))
		if !pool.serves(m) || p.outputs[m] != nil || seen <= 0 || !a.valid() {
			continue
		}
		p.outputs[m] = &outputMean{mean: a.Mean, seen: min(seen, outputMemory), longest: a.Longest}
	}
}

// forget replaces the controller of a pool by a new one.
func (p *Planner) forget(now time.Time, ev Forget) {
	i := slices.IndexFunc(p.pools, func(x *pool) bool { return x.id == ev.Pool })
	if i < 0 {
		return
	}
	pool := p.pools[i]
	p.recalled = slices.DeleteFunc(p.recalled, func(r *recalled) bool {
		return r.Name == pool.name && slices.Equal(r.Models, pool.models)
	})
	pool.recalled, pool.takenOver = nil, nil
	for _, m := range pool.models {
		delete(p.outputs, m)
	}
	pool.control(p.flow.For(pool.name, pool.models))
	pool.rejoin(now, pool.observe)
}
