package flowcontroltest

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// LivePool is two runners with steady interactive load and endless batch work, which start what a
// controller grants. It is deterministic.
type LivePool struct {
	flowcontrol.Controller
	Now     time.Time
	Started int // lines so far
	// Change changes what metrics and the gateway show. Nil: nothing is changed.
	Change func(*flowcontrol.Reading)

	runners map[string]*liveRunner
	steps   int
	first   []flowcontrol.Bucket // the gateway's
}

// liveRunner is an engine: its lines by the tokens that they have produced, and its counters.
type liveRunner struct {
	lines                              []float64
	prompts, output, iterations, spent float64
}

const (
	liveStep   = 250 * time.Millisecond
	liveUsers  = 20.0 // that run on a runner
	livePrompt = 400
	liveOutput = 200
	liveKV     = 400_000
)

// liveRunners are the runners' names.
var liveRunners = []string{"a", "b"}

// NewLivePool returns a pool at Noon under a controller that no runner has joined.
func NewLivePool(c flowcontrol.Controller) *LivePool {
	p := &LivePool{Now: Noon, runners: map[string]*liveRunner{}, first: []flowcontrol.Bucket{
		{Upper: 0.1}, {Upper: 0.2}, {Upper: 0.4}, {Upper: 1}, {Upper: 2}, {Upper: math.Inf(1)}}}
	for _, id := range liveRunners {
		p.runners[id] = &liveRunner{}
	}
	p.Restart(c)
	return p
}

// Restart gives the pool to another controller. The lines in flight are lost.
func (p *LivePool) Restart(c flowcontrol.Controller) {
	p.Controller = c
	for _, id := range liveRunners {
		p.runners[id].lines = nil
		p.Observe(p.Now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: id}})
	}
}

// InFlight returns the number of lines that the pool carries.
func (p *LivePool) InFlight() (sum int) {
	for _, r := range p.runners {
		sum += len(r.lines)
	}
	return sum
}

// Run lets time pass, and calls each, if it is not nil, after every step.
func (p *LivePool) Run(d time.Duration, each func()) {
	for end := p.Now.Add(d); p.Now.Before(end); {
		p.step()
		if each != nil {
			each()
		}
	}
}

func (p *LivePool) step() {
	p.Now = p.Now.Add(liveStep)
	p.steps++
	for _, id := range liveRunners {
		p.decode(id, p.runners[id])
	}
	if p.steps%4 == 0 {
		p.read()
	}
	for _, id := range liveRunners {
		p.start(id, p.runners[id])
	}
}

// iteration returns the time of an iteration of a runner, in milliseconds.
func (r *liveRunner) iteration() float64 { return 30 + 0.2*(liveUsers+float64(len(r.lines))) }

func (p *LivePool) decode(id string, r *liveRunner) {
	n := float64(liveStep) / float64(time.Millisecond) / r.iteration()
	r.iterations += n * (liveUsers + float64(len(r.lines)))
	r.spent += liveStep.Seconds() * (liveUsers + float64(len(r.lines)))
	r.output += n * (liveUsers + float64(len(r.lines)))
	r.prompts += liveStep.Seconds() * 2 * livePrompt // of users
	left := r.lines[:0]
	ended := 0
	for _, produced := range r.lines {
		if produced += n; produced < liveOutput {
			left = append(left, produced)
		} else {
			ended++
		}
	}
	r.lines = left
	for i := range ended {
		p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: id,
			InFlight: len(r.lines) + ended - 1 - i}, PromptTokens: livePrompt,
			OutputTokens: liveOutput, Latency: time.Duration(liveOutput * r.iteration() * 1e6)})
	}
}

// read reports the runners' metrics and, every five seconds, those of a gateway.
func (p *LivePool) read() {
	for _, id := range liveRunners {
		r, m := p.runners[id], flowcontrol.NoReading(flowcontrol.Metrics, p.Now)
		m.Running, m.Waiting = liveUsers+float64(len(r.lines)), 0
		m.KVTokens, m.KVUsed = liveKV, (liveUsers+float64(len(r.lines)))*600/liveKV
		m.PromptTokens, m.CachedTokens, m.OutputTokens = r.prompts, 0, r.output
		m.TokenGaps, m.TokenGapTime = r.iterations, r.spent
		p.change(&m)
		p.Observe(p.Now, &flowcontrol.Read{Runner: id, Reading: &m})
	}
	if p.steps%20 != 0 {
		return
	}
	first := make([]flowcontrol.Bucket, len(p.first))
	for i := range p.first {
		p.first[i].Count += min(20, 8*float64(i+1))
	}
	copy(first, p.first)
	g := flowcontrol.NoReading(flowcontrol.Gateway, p.Now)
	g.FirstTokenTimes, g.TTFT = first, flowcontrol.Attained(first, 2)
	g.TPOT = flowcontrol.Attainment{Requests: g.TTFT.Requests}
	p.change(&g)
	p.Observe(p.Now, &flowcontrol.Read{Reading: &g})
}

func (p *LivePool) change(r *flowcontrol.Reading) {
	if p.Change != nil {
		p.Change(r)
	}
}

// start starts what is granted, and ends what is to be evicted.
func (p *LivePool) start(id string, r *liveRunner) {
	for {
		a := p.Allowance(p.Now)
		for _, g := range a.Runners {
			if g.Runner != id {
				continue
			}
			for g.Evict && len(r.lines) > g.Lines {
				r.lines = r.lines[:len(r.lines)-1]
				p.Observe(p.Now, &flowcontrol.Evicted{Load: flowcontrol.Load{Runner: id,
					InFlight: len(r.lines)}})
			}
			if len(r.lines) >= g.Lines || p.InFlight() >= a.Pool || g.Prompt <= 0 {
				return
			}
		}
		r.lines = append(r.lines, 0)
		r.prompts += livePrompt
		p.Started++
		p.Observe(p.Now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: id,
			InFlight: len(r.lines), Prefilling: livePrompt}, PromptTokens: livePrompt,
			OutputTokens: liveOutput, LongOutput: liveOutput})
		p.Observe(p.Now, &flowcontrol.FirstToken{Load: flowcontrol.Load{Runner: id,
			InFlight: len(r.lines)}, PromptTokens: livePrompt})
	}
}
