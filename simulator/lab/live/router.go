package live

import (
	"context"
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// router chooses the runner of each interactive request: by what the runners' metrics showed when
// it last read them, and what it has sent since.
type router struct {
	kind    scenario.Router
	every   time.Duration
	runners *runners
	kv      float64 // tokens in a runner's KV cache

	mu     sync.Mutex
	loads  []load
	last   int     // runner of the last request
	prompt float64 // mean of prompts, in tokens
}

// load is the load of a runner in the unit of the router: requests or tokens.
type load struct {
	value float64
	away  bool // it did not answer
}

// defaultView is the interval at which the router reads the runners if the scenario has it see the
// present load.
const defaultView = 250 * time.Millisecond

// heldTokenWeight is the load of a token in the KV cache, relative to one of a waiting prompt, as
// in the simulation.
const heldTokenWeight = 0.02

func newRouter(pool scenario.Pool, e engine.Config, r *runners) *router {
	every := pool.RouterView
	if every == 0 {
		every = defaultView
	}
	return &router{kind: pool.Router, every: every, runners: r, kv: float64(e.Profile.KVTokens),
		loads: make([]load, len(r.address)), last: -1}
}

// watch reads the runners' metrics until ctx is done.
func (r *router) watch(ctx context.Context) {
	if r.kind == scenario.RoundRobin {
		return
	}
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		var reading sync.WaitGroup
		for i := range r.loads {
			reading.Go(func() { r.read(ctx, i) })
		}
		reading.Wait()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *router) read(ctx context.Context, i int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	p, err := readPage(ctx, r.runners.url(i)+"/metrics")
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.loads[i].away = true
		return
	}
	waiting := p.sum("vllm:num_requests_waiting")
	value := waiting + p.sum("vllm:num_requests_running")
	if r.kind != scenario.LeastRequests {
		value = waiting*r.prompt + heldTokenWeight*r.kv*p.sum("vllm:kv_cache_usage_perc")
	}
	r.loads[i] = load{value: value}
}

// choose returns the runner for a request, and counts the request as its load. Of those with the
// same load it is the next one in turn. tried are runners that did not answer it.
func (r *router) choose(request workload.Request, tried map[int]bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompt += (float64(request.Input) - r.prompt) / 64
	best, n := -1, len(r.loads)
	for step := range n {
		i := (r.last + 1 + step) % n
		if tried[i] || r.loads[i].away {
			continue
		}
		if best < 0 || r.loads[i].value < r.loads[best].value {
			best = i
		}
	}
	if best < 0 {
		best = (r.last + 1) % n
	}
	if home := r.home(request, tried); home >= 0 &&
		r.loads[home].value <= clearFactor*r.loads[best].value+clearTokens {
		best = home
	}
	r.last = best
	if r.kind == scenario.LeastRequests {
		r.loads[best].value++
	} else if r.kind != scenario.RoundRobin {
		r.loads[best].value += float64(request.Input) * (1 + heldTokenWeight)
	}
	return best
}

// A runner has clearly more work than another if it has more than this factor and these tokens
// more, as in the simulation.
const (
	clearFactor = 1.5
	clearTokens = 2000
)

// home returns the runner for prompts with the beginning of a request's; -1: there is none, or the
// router does not look at prompts.
func (r *router) home(request workload.Request, tried map[int]bool) int {
	home, most := -1, uint64(0)
	if r.kind != scenario.PrefixAffinity {
		return home
	}
	for i, l := range r.loads {
		if tried[i] || l.away {
			continue
		}
		if w, ok := request.Affinity(i); ok && (home < 0 || w > most) {
			home, most = i, w
		}
	}
	return home
}

// lost notes that a runner did not answer.
func (r *router) lost(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loads[i].away = r.kind != scenario.RoundRobin
}
