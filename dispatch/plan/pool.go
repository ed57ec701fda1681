package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// pool is the runners that serve the same models, with the jobs they could run in order: once those
// with a line to start, and once those with a line to start or a chunk to claim. Whose lines are
// read next follows from the second, while a job whose lines are still to come never holds up one
// whose lines are here.
type pool struct {
	key     string    // the models, joined
	models  []string  // in order
	runners []*runner // by id
	emptied time.Time // when the last of them left
	starts  *scheduler.Queue
	loads   *scheduler.Queue
	flow    flowcontrol.Controller

	inFlight int // of its runners
	limit    int // of its runners together, as granted
	ceiling  int // of the pool, as granted
	streams  int // of each runner's lines, as wished
	reason   flowcontrol.Reason
	until    time.Time // when to ask the controller again
	stale    bool      // the allowance must be asked for again

	promptTokens   int // of the ready lines of its jobs
	expected       int // lines that claims under way will bring, as far as one can guess
	expectedTokens int // of their prompts
	rate           rate
	why            Reason // why no more was started, as of the last fill
}

func (p *pool) serves(model string) bool {
	_, found := slices.BinarySearch(p.models, model)
	return found
}

// put makes a job known, or ranks it again.
func (p *pool) put(j *job) {
	queued := j.queued(p.rate.perSecond())
	p.starts.Put(queued)
	p.loads.Put(queued)
}

// observe feeds the controller.
func (p *pool) observe(now time.Time, o flowcontrol.Observation) {
	if p.flow.Observe(now, o) {
		p.stale = true
	}
}

// refresh takes over the controller's allowance if it may have changed.
func (p *pool) refresh(now time.Time, out *Actions) {
	if !p.stale && (p.until.IsZero() || p.until.After(now)) {
		return
	}
	a := p.flow.Allowance(now)
	p.stale, p.limit, p.ceiling, p.streams, p.reason, p.until = false, 0, a.Pool, a.Streams,
		a.Reason, a.Until
	granted := a.Runners // by id, like ours
	for _, r := range p.runners {
		for len(granted) > 0 && granted[0].Runner < r.id {
			granted = granted[1:]
		}
		r.granted = flowcontrol.RunnerAllowance{}
		if len(granted) > 0 && granted[0].Runner == r.id {
			r.granted = granted[0]
		}
		p.limit += r.granted.Lines
		if r.granted.Recall {
			out.Recall = r.underWay.recall(r.id, r.granted.Lines, out.Recall)
		}
	}
}

// roomiest is the runner that a line should go to: the one with the most room left, the first by id
// among equals. A scan: pools have tens of runners, and a heap would have to follow every change of
// allowance. What one runner carries beyond its limit, since that has shrunk, takes nothing from
// the others.
func (p *pool) roomiest(now time.Time) *runner {
	if p.inFlight >= p.ceiling {
		return nil
	}
	var best *runner
	room := 0
	for _, r := range p.runners {
		if have := r.room(now); have > room {
			best, room = r, have
		}
	}
	return best
}

// noRoom names why roomiest found nobody.
func (p *pool) noRoom(now time.Time) Reason {
	if len(p.runners) == 0 {
		return NoRunner
	}
	for _, r := range p.runners {
		if !r.breaker.open {
			if p.reason != "" {
				return Reason(p.reason)
			}
			return AtLimit
		}
	}
	return UpstreamDown
}

func (p *pool) add(now time.Time, r *runner) {
	i, _ := slices.BinarySearchFunc(p.runners, r.id, func(x *runner, id string) int {
		return cmp.Compare(x.id, id)
	})
	p.runners = slices.Insert(p.runners, i, r)
	r.pool = p
	p.inFlight += r.inFlight
	p.observe(now, r.observation(flowcontrol.RunnerJoined))
	p.stale = true
}

func (p *pool) remove(now time.Time, r *runner) {
	i := slices.Index(p.runners, r)
	p.runners = slices.Delete(p.runners, i, i+1)
	p.emptied = now
	r.pool, r.granted = nil, flowcontrol.RunnerAllowance{}
	p.inFlight -= r.inFlight
	p.observe(now, flowcontrol.Observation{Kind: flowcontrol.RunnerLeft, Runner: r.id})
	p.stale = true
}
