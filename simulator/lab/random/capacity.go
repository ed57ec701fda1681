package random

import (
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

// demand is what an average interactive request asks of an engine, in tokens.
type demand struct {
	prompt   float64 // all of it, in the KV cache
	computed float64 // prompt tokens that no cache has
	answer   float64
}

// context returns the mean number of tokens that a request attends to.
func (d demand) context() float64 { return d.prompt + d.answer/2 }

// capacity returns the largest rate of requests that an engine can carry by its cost model, in
// requests a second.
func (d demand) capacity(p engine.Profile) float64 {
	low, high := 0.0, 1.0
	for d.fits(p, high) && high < 1e4 {
		low, high = high, 2*high
	}
	for range 30 {
		middle := (low + high) / 2
		if d.fits(p, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// fits reports whether the engine carries a rate within its limits.
func (d demand) fits(p engine.Profile, rate float64) bool {
	const busy = 0.95 // the largest share of time for prompts
	if p.CostModel.PromptToken(d.computed)*d.computed*rate > busy*1000 {
		return false
	}
	iteration, ok := d.iteration(p, rate)
	if !ok {
		return false
	}
	running := rate * d.answer * iteration / 1000
	tokens := running + rate*d.computed*iteration/1000
	return running <= float64(p.MaxSeqs) && running*d.context() <= float64(p.KVTokens) &&
		tokens <= float64(p.MaxBatchedTokens)
}

// iteration returns the mean time of an iteration at a rate, in milliseconds. ok is false if the
// requests that run grow without end.
func (d demand) iteration(p engine.Profile, rate float64) (time float64, ok bool) {
	const slowest = 10_000
	time = p.CostModel.C0
	for range 200 {
		running := rate * d.answer * time / 1000
		next := p.CostModel.MeanIteration(costmodel.Load{Running: running,
			Context: running * d.context(), PromptRate: rate * d.computed,
			PromptMean: d.computed}, costmodel.Mix{Prompt: 1, Output: 1}, 0)
		if next > slowest {
			return next, false
		}
		if next-time < 1e-6*time {
			return next, true
		}
		time = next
	}
	return time, false
}
