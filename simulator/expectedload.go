package simulator

import (
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan/routing"
	"github.com/tidefill/tidefill/simulator/workload"
)

// expectedLoad chooses replicas with package routing. It sees what the daemon sees of a request
// that passes through it: its prompt, its first token and its end. So it knows at any time what was
// sent to a replica; of the engine it knows the share of KV blocks in use as of the router's last
// look. A nil pointer is another router, which needs none of this.
type expectedLoad struct {
	sim      *simulation
	table    *routing.Table
	work     workOf
	kvTokens int // of a replica; 0: the scenario withholds it
	// answers are of interactive requests, lines of lines.
	answers, lines answerLength
	cached         int64 // prompt tokens that were expected in caches

	// What choose uses again.
	candidates []routing.Candidate
	replicas   []*replica
	prefix     []uint64
}

// routingBlock is the number of tokens that a hash of the router's table stands for.
const routingBlock = 256

// assumedWork is what a request is expected to cost, in milliseconds of engine time.
type assumedWork struct{ prompt, answer float64 }

// workOf returns what tokens of a prompt and of an answer are expected to cost.
type workOf func(prompt, answer float64) assumedWork

// newWorkOf counts with an engine's cost model or, without one, with the default estimate.
func newWorkOf(m costmodel.Model) workOf {
	if m.Known() {
		return func(prompt, answer float64) assumedWork {
			return assumedWork{m.PromptToken(prompt) * prompt,
				(m.C1 + m.KV*(prompt+answer/2)) * answer}
		}
	}
	e := costmodel.DefaultEstimate()
	return func(prompt, answer float64) assumedWork {
		return assumedWork{e.Work(prompt, 0), e.Work(0, answer)}
	}
}

// answerLength estimates the number of tokens of an answer: the mean of those so far.
type answerLength struct{ sum, answers float64 }

func (l *answerLength) add(tokens int) {
	l.sum += float64(tokens)
	l.answers++
}

// mean counts the assumed length as one answer.
func (l *answerLength) mean() float64 {
	return (l.sum + costmodel.AssumedOutputTokens) / (l.answers + 1)
}

// newExpectedLoad gives the router the engine's facts that policies get: its KV cache and its cost
// model, with the scenario's errors.
func newExpectedLoad(sim *simulation) *expectedLoad {
	facts := sim.setup.flowConfig().Engine
	return &expectedLoad{sim: sim,
		table: routing.New(routing.Config{BlockTokens: routingBlock}),
		work:  newWorkOf(facts.CostModel), kvTokens: facts.KVTokens}
}

// choose returns the ready replica for a request, and notes what the request is expected to cost
// there; nil: none is ready.
func (x *expectedLoad) choose(req *request) *replica {
	x.candidates, x.replicas = x.candidates[:0], x.replicas[:0]
	for _, r := range x.sim.pools[0].replicas {
		if r.phase == ready {
			x.replicas = append(x.replicas, r)
			x.candidates = append(x.candidates, routing.Candidate{Runner: r.name, Work: r.work,
				Requests: r.inside, KVUsed: x.sim.routerKV(r)})
		}
	}
	work := x.work(float64(req.input), x.answers.mean())
	x.prefix = req.content.Blocks(x.prefix[:0], routingBlock)
	asked := routing.Request{Work: work.prompt + work.answer, PromptWork: work.prompt,
		PromptTokens: req.input, Prefix: x.prefix}
	i, cached := x.table.Choose(x.candidates, asked)
	if i < 0 {
		return nil
	}
	x.cached += int64(cached)
	work.prompt -= asked.Saved(cached)
	req.work = work
	return x.replicas[i]
}

// submitted counts a request in its replica.
func (x *expectedLoad) submitted(r *replica, req *request, content workload.Request) {
	if x == nil {
		return
	}
	if req.line != nil {
		req.work = x.work(float64(req.input), x.lines.mean())
	}
	r.work += req.work.prompt + req.work.answer
	x.prefix = content.Blocks(x.prefix[:0], routingBlock)
	x.table.Limit(r.name, x.kvTokens)
	x.table.Sent(r.name, x.prefix)
}

// firstToken notes that a prompt has been computed.
func (x *expectedLoad) firstToken(r *replica, req *request) {
	if x != nil {
		r.work -= req.work.prompt
		req.work.prompt = 0
	}
}

// removed subtracts a request that has left its replica.
func (x *expectedLoad) removed(r *replica, req *request) {
	if x == nil {
		return
	}
	r.work -= req.work.prompt + req.work.answer
	if r.inside == 0 {
		r.work = 0 // without what rounding has left
	}
}

// finished learns the length of an answer.
func (x *expectedLoad) finished(req *request, tokens int) {
	switch {
	case x == nil:
	case req.line != nil:
		x.lines.add(tokens)
	default:
		x.answers.add(tokens)
	}
}

// ended forgets what was in the cache of a replica.
func (x *expectedLoad) ended(r *replica) {
	if x != nil {
		x.table.Forget(r.name)
	}
}
