package routing

import "math"

// Candidate is a runner that may get a request.
type Candidate struct {
	Runner string
	// Work is the expected work of the requests and lines that it carries, in milliseconds of
	// engine time. Prompts count until the first token, without the part that was expected in the
	// cache. NaN: it is unknown, and the runner is a last resort.
	Work float64
	// Requests is the number of requests and lines in flight.
	Requests int
	// KVUsed is the share of its KV cache that running requests use, 0 to 1. NaN: it is unknown.
	KVUsed float64
}

// Request is a request that needs a runner.
type Request struct {
	// Work is its expected work, in milliseconds of engine time. PromptWork is the part of it that
	// computes the prompt, if no cache has any of it.
	Work, PromptWork float64
	// PromptTokens is the length of the prompt. 0: it is unknown, and caches do not count.
	PromptTokens int
	// Prefix identifies the beginnings of the prompt, the shortest first: each hash covers a block
	// of Config.BlockTokens more, and all before it, and what else engines keep apart, such as the
	// model and a tenant's salt. Nil: nothing is known to repeat.
	Prefix []uint64
}

// Saved returns the part of PromptWork that is saved if a cache has the first tokens of the prompt.
func (r Request) Saved(cached int) float64 {
	if r.PromptTokens <= 0 {
		return 0
	}
	return finite(r.PromptWork) * min(1, float64(cached)/float64(r.PromptTokens))
}

const (
	// equalWithin is the difference of costs that does not matter, as a share of the request's own
	// work. With 0.1, the requests of the mooncake trace find as many tokens in caches as with 0,
	// and about half as many of them are late. With 0.25 they find 4 to 7 % fewer.
	equalWithin = 0.1
	// fullFrom is the share of the KV cache from which a runner counts as filling. Engines admit a
	// request only if there are blocks for all of its prompt, and preempt requests when there are
	// none for the next tokens. The cost grows from here on, up to twice the load where the cache
	// is full.
	fullFrom = 0.85
)

// choice is what the table finds about a candidate.
type choice struct {
	cost   float64
	cached int    // tokens
	sent   uint64 // number of the last request that was sent there; 0: none
}

// Choose returns the index of the runner for a request, and the number of prompt tokens that its
// cache is expected to have. Index -1: there are no candidates. The caller reports the request with
// Sent once it is on its way. Choose allocates nothing from the second call on with as many
// candidates.
func (t *Table) Choose(candidates []Candidate, r Request) (index, cached int) {
	t.measure(r.Prefix)
	t.choices = t.choices[:0]
	least := math.Inf(1)
	for i := range candidates {
		c := t.weigh(i, &candidates[i], &r)
		t.choices = append(t.choices, c)
		least = min(least, c.cost)
	}
	equal := least + equalWithin*finite(r.Work)
	index = -1
	for i := range t.choices {
		if t.choices[i].cost <= equal && (index < 0 || t.before(candidates, i, index)) {
			index = i
		}
	}
	if index < 0 {
		return -1, 0
	}
	return index, t.choices[index].cached
}

// before reports whether candidate i is better than candidate j, which costs as much.
func (t *Table) before(candidates []Candidate, i, j int) bool {
	if a, b := candidates[i].Requests, candidates[j].Requests; a != b {
		return a < b
	}
	return t.choices[i].sent < t.choices[j].sent
}

// weigh returns what a request costs at a candidate.
func (t *Table) weigh(index int, c *Candidate, r *Request) (x choice) {
	kv, capacity := c.KVUsed, 0
	if at := t.lookUp(index, c.Runner); at != nil {
		x.sent, capacity = at.sent, at.limit*t.cfg.BlockTokens
		x.cached = min(int(t.depth[at.slot])*t.cfg.BlockTokens, max(0, r.PromptTokens))
	}
	load := max(0, c.Work)
	if math.IsNaN(load) {
		load = math.Inf(1)
	}
	x.cost = load - r.Saved(x.cached)
	if capacity > 0 {
		kv += float64(max(0, r.PromptTokens)-x.cached) / float64(capacity)
	}
	if full := (min(kv, 1) - fullFrom) / (1 - fullFrom); full > 0 { // it is not if kv is NaN
		x.cost += full * (load + finite(r.Work))
	}
	return x
}

// finite returns a time, or 0 for what is none.
func finite(x float64) float64 {
	if x > 0 && x <= math.MaxFloat64 {
		return x
	}
	return 0
}
