package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// useCase is what a pool has learned of the requests of a use case in a class.
type useCase struct {
	name, class string
	objective   time.Duration
	output      outputMean
	refused     map[flows.Reason]int
	answers     []answerTime // the last ones, oldest first
	last        time.Time
}

// answerTime is the average time per output token of an answer.
type answerTime struct {
	at       time.Time
	perToken float64 // seconds
}

const (
	// attainmentWindow is the time over which objectives are judged.
	attainmentWindow = 5 * time.Minute
	maxAnswerTimes   = 4096
	// knownRequests is the number of answers below which attainment is unknown.
	knownRequests = 50
	maxUseCases   = 1000
)

// useCase returns what is known of the use case of a request.
func (p *pool) useCase(x *request) *useCase {
	key := useCaseKey{x.Flow.UseCase, x.Flow.Class}
	c := p.cases[key]
	if c == nil {
		if len(p.cases) >= maxUseCases {
			p.dropOldestCase()
		}
		if p.cases == nil {
			p.cases = map[useCaseKey]*useCase{}
		}
		c = &useCase{name: key.name, class: key.class, refused: map[flows.Reason]int{}}
		p.cases[key] = c
	}
	c.last = x.came
	c.objective = x.Objective
	return c
}

type useCaseKey struct{ name, class string }

func (p *pool) dropOldestCase() {
	var oldest useCaseKey
	for key, c := range p.cases {
		if o := p.cases[oldest]; o == nil || c.last.Before(o.last) ||
			c.last.Equal(o.last) && (key.name < oldest.name ||
				key.name == oldest.name && key.class < oldest.class) {
			oldest = key
		}
	}
	delete(p.cases, oldest)
}

// expect estimates the output tokens of a request.
func (c *useCase) expect(assumed, limit int) float64 {
	expected := float64(assumed)
	if c.output.seen > 0 {
		expected = c.output.mean
	}
	if limit > 0 {
		expected = min(expected, float64(limit))
	}
	return expected
}

// turnedAway counts a request that got no place.
func (p *pool) turnedAway(x *request, why flows.Reason) { p.useCase(x).refused[why]++ }

// learn takes over what the end of a request shows of its use case. The latency is that which its
// user sees, from its coming to its last byte.
func (p *pool) learn(now time.Time, x *request, ev *RequestEnded) {
	if ev.Outcome != Succeeded {
		return
	}
	p.felt.ended(x, ev, p.controlled.SLO)
	if ev.OutputTokens <= 0 {
		return
	}
	c := p.useCase(x)
	c.output.add(ev.OutputTokens)
	perToken := (ev.Latency + x.started.Sub(x.came)).Seconds() / float64(ev.OutputTokens)
	if len(c.answers) >= maxAnswerTimes {
		c.answers = slices.Delete(c.answers, 0, maxAnswerTimes/4)
	}
	c.answers = append(c.answers, answerTime{now, perToken})
	if x.Objective > 0 {
		// What is felt of the engine alone, since waiting is no reason to send it less.
		p.guard.answered(now, ev.Latency.Seconds()/float64(ev.OutputTokens),
			x.Objective.Seconds())
	}
}

// UseCaseStatus is the state of a use case in a class of a pool.
type UseCaseStatus struct {
	Name, Class string
	// Objective is the longest average time per output token promised, at the 95th percentile. 0:
	// none.
	Objective time.Duration
	// Requests were answered in the window. P95 is the 95th percentile of their average times per
	// output token, and Attained the share of them within the objective; both are unknown, -1,
	// while there are fewer than 50.
	Requests int
	P95      time.Duration
	Attained float64
	// Refused counts the requests that got no place, by reason.
	Refused map[flows.Reason]int
}

// status returns the state of the use case.
func (c *useCase) status(now time.Time) UseCaseStatus {
	from := 0
	for from < len(c.answers) && now.Sub(c.answers[from].at) > attainmentWindow {
		from++
	}
	c.answers = slices.Delete(c.answers, 0, from)
	s := UseCaseStatus{Name: c.name, Class: c.class, Objective: c.objective,
		Requests: len(c.answers), P95: -1, Attained: -1, Refused: maps.Clone(c.refused)}
	if s.Requests < knownRequests {
		return s
	}
	times, within := make([]float64, 0, len(c.answers)), 0
	for _, a := range c.answers {
		times = append(times, a.perToken)
		if a.perToken <= c.objective.Seconds() {
			within++
		}
	}
	slices.Sort(times)
	s.P95 = time.Duration(times[(95*len(times)+99)/100-1] * float64(time.Second))
	if c.objective > 0 {
		s.Attained = float64(within) / float64(len(times))
	}
	return s
}

// ClassStatus counts the requests of a class.
type ClassStatus struct {
	Name             string
	Waiting, Running int
}

// RequestsStatus is the state of the interactive requests of a pool that pass through.
type RequestsStatus struct {
	Places   int
	Bound    int    // of the guard of objectives; 0: none
	Reason   Reason // why those that wait do so
	Classes  []ClassStatus
	UseCases []UseCaseStatus // by name, then class
}

// Requests returns the state of the requests of all pools, in the order of Pools; nil if none pass
// through.
func (p *Planner) Requests(now time.Time) (all []*RequestsStatus) {
	if !p.cfg.Inline.Enabled {
		return nil
	}
	for _, pool := range p.pools {
		s := &RequestsStatus{Places: pool.requestPlaces(now), Bound: int(pool.guard.bound)}
		if pool.instead != "" {
			s.Places = min(pool.limit, pool.ceiling)
		}
		if pool.requests.Waiting() > 0 {
			s.Reason = pool.requestReason
		}
		pool.requests.Classes(func(name string, waiting, running int) {
			s.Classes = append(s.Classes, ClassStatus{name, waiting, running})
		})
		for _, key := range slices.SortedFunc(maps.Keys(pool.cases), useCaseKey.compare) {
			s.UseCases = append(s.UseCases, pool.cases[key].status(now))
		}
		all = append(all, s)
	}
	return all
}
