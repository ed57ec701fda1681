package autoscale

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// replica predicts what a replica of a pool can do.
type replica struct {
	pool *PoolState
	cfg  *HarvestConfig
	// capacity is the number of interactive requests per second that it serves alone. 0: unknown.
	capacity float64
	target   float64 // time of an iteration, in milliseconds
}

func newReplica(p *PoolState, cfg *HarvestConfig, burst float64) replica {
	r := replica{pool: p, cfg: cfg, target: cfg.Target * milliseconds(p.SLO.WithUsual().TPOT)}
	if p.Unshared && p.Lines.Mix.Output > 0 && p.Engine.MaxSeqs > 0 &&
		p.Engine.CostModel.Known() {
		r.target = math.Inf(1)
		r.target = p.Engine.CostModel.MeanIteration(costmodel.Load{}, p.Lines.Mix,
			r.lines(costmodel.Load{}))
	}
	if p.Interactive.Served {
		r.capacity = p.Interactive.PerReplica
		if r.capacity <= 0 {
			r.capacity = r.interactiveCapacity(burst)
		}
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// load returns the load of interactive requests at a rate, if an iteration takes a time in
// milliseconds.
func (r replica) load(rate, iteration float64) costmodel.Load {
	mix := r.pool.Interactive.Mix
	running := rate * mix.Output * iteration / 1000
	return costmodel.Load{
		Running:    running,
		Context:    running * (mix.Prompt + mix.Output/2),
		PromptRate: rate * mix.Prompt, PromptMean: mix.Prompt,
	}
}

// interactiveCapacity returns the rate of interactive requests that a replica serves alone, in
// requests a second. An iteration meets the TPOT objective even in a burst of burst times as many.
func (r replica) interactiveCapacity(burst float64) float64 {
	p := r.pool
	if !p.Engine.CostModel.Known() {
		return 0
	}
	objective := milliseconds(p.SLO.WithUsual().TPOT)
	fits := func(rate float64) bool {
		load := r.load(rate, objective)
		return p.Engine.CostModel.Lines(load, costmodel.Mix{Prompt: 1, Output: 1},
			objective) >= 0 &&
			(p.Engine.MaxSeqs == 0 || load.Running <= float64(p.Engine.MaxSeqs)) &&
			(p.Engine.KVTokens == 0 || load.Context <= float64(p.Engine.KVTokens))
	}
	low, high := 0.0, 1.0
	for fits(high) && high < 1e6 {
		low, high = high, 2*high
	}
	for range 40 {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low / burst
}

// rate returns the predicted work per second, in milliseconds, beside a rate of interactive
// requests.
func (r replica) rate(requests float64) float64 {
	p := r.pool
	if !p.Engine.CostModel.Known() {
		if r.capacity <= 0 {
			return costmodel.AssumedRate
		}
		return costmodel.AssumedRate * max(0, 1-requests/(2*r.capacity))
	}
	mix, load := p.Lines.Mix, r.load(requests, r.target)
	lines := r.lines(load)
	if !(lines > 0) {
		return 0
	}
	iterations := 1000 / p.Engine.CostModel.MeanIteration(load, mix, lines)
	return lines * iterations / mix.Output * p.Lines.Work
}

// lines returns the number of batch lines that run beside a load.
func (r replica) lines(load costmodel.Load) float64 {
	p, mix := r.pool, r.pool.Lines.Mix
	lines := p.Engine.CostModel.Lines(load, mix, r.target)
	if p.Engine.MaxSeqs > 0 {
		lines = min(lines, float64(p.Engine.MaxSeqs-r.cfg.Slots)-load.Running)
	}
	if p.Engine.KVTokens > 0 {
		free := r.cfg.KV*float64(p.Engine.KVTokens) - load.Context
		lines = min(lines, free/(mix.Prompt+mix.Output/2))
	}
	return lines
}

// lineTime returns the time of a batch line from its start to its answer.
func (r replica) lineTime() time.Duration {
	return time.Duration(r.pool.Lines.Mix.Output * r.target * float64(time.Millisecond))
}
