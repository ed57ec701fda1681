package autoscale

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/portable"
)

// harvest says what batch lines get out of a pool's replicas: as the engine's law has it, times the
// share that was achieved.
type harvest struct {
	cfg HarvestConfig

	last      time.Time
	harvested float64
	waiting   float64 // work left at last
	// Sums of what was achieved and predicted, faded over Memory.
	achieved, predicted float64
	share               float64
}

// replica is what a pool's replica can do, of a given kind and at a given moment.
type replica struct {
	pool   *Pool
	cfg    *HarvestConfig
	carry  float64 // interactive requests a second
	target float64 // milliseconds of an iteration
}

func replicaOf(p *Pool, cfg *HarvestConfig, burst float64) replica {
	r := replica{pool: p, cfg: cfg, target: cfg.Target * milliseconds(p.SLO.TPOT)}
	if p.Unhurried && p.Lines.Mix.Output > 0 && p.Engine.MaxSeqs > 0 &&
		p.Engine.CostModel.Known() {
		r.target = math.Inf(1)
		r.target = p.Engine.CostModel.MeanIteration(costmodel.Load{}, p.Lines.Mix,
			r.lines(costmodel.Load{}))
	}
	if p.Interactive.Served {
		r.carry = p.Interactive.PerReplica
		if r.carry <= 0 {
			r.carry = r.carries(burst)
		}
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// load is what requests at a rate are, once iterations take a time.
func (r replica) load(rate, iteration float64) costmodel.Load {
	mix := r.pool.Interactive.Mix
	running := rate * mix.Output * iteration / 1000
	return costmodel.Load{
		Running:    running,
		Context:    portable.Rounded(running * (mix.Prompt + portable.Rounded(mix.Output/2))),
		PromptRate: rate * mix.Prompt, PromptMean: mix.Prompt,
	}
}

// carries is how many interactive requests a second a replica serves alone, so that when burst
// times as many come for a while an iteration still takes no longer than promised.
func (r replica) carries(burst float64) float64 {
	p := r.pool
	if !p.Engine.CostModel.Known() {
		return 0
	}
	promised := milliseconds(p.SLO.TPOT)
	fits := func(rate float64) bool {
		load := r.load(rate, promised)
		return p.Engine.CostModel.Lines(load, costmodel.Mix{Prompt: 1, Output: 1}, promised) >= 0 &&
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

// rate is the work a replica does in a second beside interactive requests, as predicted.
func (r replica) rate(requests float64) float64 {
	p := r.pool
	if !p.Engine.CostModel.Known() {
		if r.carry <= 0 {
			return costmodel.AssumedRate
		}
		return costmodel.AssumedRate * max(0, 1-requests/(2*r.carry))
	}
	mix, load := p.Lines.Mix, r.load(requests, r.target)
	lines := r.lines(load)
	if !(lines > 0) {
		return 0
	}
	iterations := 1000 / p.Engine.CostModel.MeanIteration(load, mix, lines)
	return lines * iterations / mix.Output * p.Lines.Work
}

// lines is how many batch lines a replica runs beside a load.
func (r replica) lines(load costmodel.Load) float64 {
	p, mix := r.pool, r.pool.Lines.Mix
	lines := p.Engine.CostModel.Lines(load, mix, r.target)
	if p.Engine.MaxSeqs > 0 {
		lines = min(lines, float64(p.Engine.MaxSeqs-r.cfg.Slots)-load.Running)
	}
	if p.Engine.KVTokens > 0 {
		free := portable.Rounded(r.cfg.KV*float64(p.Engine.KVTokens)) - load.Context
		lines = min(lines, free/(mix.Prompt+portable.Rounded(mix.Output/2)))
	}
	return lines
}

// line is how long a batch line takes from its start to its answer.
func (r replica) line() time.Duration {
	return time.Duration(r.pool.Lines.Mix.Output * r.target * float64(time.Millisecond))
}

// observe compares what was harvested since it was last called with what was predicted. Only times
// with more work than the replicas could do tell anything. Replicas that have only become ready
// have answered no line yet.
func (h *harvest) observe(now time.Time, r replica, requests, work float64) {
	p := r.pool
	before, harvested, waiting := h.last, p.Harvested-h.harvested, min(work, h.waiting)
	h.last, h.harvested, h.waiting = now, p.Harvested, work
	if h.share == 0 {
		h.share = h.cfg.Share
	}
	length := now.Sub(before)
	if before.IsZero() || length <= 0 || harvested < 0 {
		return
	}
	ready, warm := 0, 0
	for _, x := range p.Replicas {
		if x.Phase == Ready {
			ready++
			if now.Sub(x.Since) >= 2*r.line() {
				warm++
			}
		}
	}
	if warm == 0 || warm < ready {
		return
	}
	rate := r.rate(requests / float64(ready))
	if rate <= 0 || rate*float64(ready)*enoughWork.Seconds() > waiting {
		return
	}
	fade := h.cfg.Memory.Seconds() / (h.cfg.Memory.Seconds() + length.Seconds())
	h.achieved = portable.Rounded(h.achieved*fade) + harvested
	h.predicted = portable.Rounded(h.predicted*fade) + portable.Rounded(rate*float64(ready)*length.Seconds())
	trust := portable.Rounded(rate * float64(ready) * h.cfg.Trust.Seconds())
	h.share = (h.achieved + portable.Rounded(trust*h.cfg.Share)) / (h.predicted + trust)
	h.share = min(max(h.share, h.cfg.ShareLeast), h.cfg.ShareMost)
}

// enoughWork is for how long the work left must last for a pool to have been kept busy: lines of
// one job can't fill every replica to its end.
const enoughWork = 5 * time.Minute
