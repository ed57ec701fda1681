package engine

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/portable"
)

// A run is a sequence of iterations in which the same requests decode. Computing it at once saves
// the events between its iterations. If the engine's state changes before its end, truncateRun
// shortens it.

// planRun computes the times of the scheduled iteration and of those that can follow it in one run.
func (e *Engine) planRun() {
	model := e.cfg.Profile.CostModel
	requests, prefilling, tokens, context, prefill := 0, 0, 0, 0, 0.0
	e.decoding = 0
	for _, s := range e.running {
		if s.prefilling {
			prefilling++
		}
		if s.scheduled == 0 {
			continue
		}
		requests++
		tokens += s.scheduled
		if s.prefilling {
			prefill += model.Prefill(costmodel.Chunk{Tokens: s.scheduled, Context: s.computed})
		} else {
			context += s.known
			e.decoding++
		}
	}
	steps := 1
	switch {
	case e.filler != nil: // the run has one iteration, since the filler chooses work for each
		requests, tokens, context, prefill = e.fill(e.report.Start, requests, tokens, context,
			prefill)
	case prefilling == 0 && len(e.report.Preempted) == 0 && e.stall == 0:
		steps = e.runLength()
	}

	e.report.Tokens = tokens
	e.ends = e.ends[:0]
	host, end := e.cfg.Host.extra(requests), time.Duration(0)
	for i := range steps {
		ms := model.Iteration(float64(tokens), float64(context+i*tokens), prefill) + host
		step := milliseconds(ms*e.pace*e.noiseAt(i)) + e.stall
		e.stall = 0
		end += step
		e.report.Steps = append(e.report.Steps, step)
		e.ends = append(e.ends, end)
	}
	e.report.End = e.report.Start.Add(end)
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// runLength returns the number of iterations of a run: until the first request ends, or until no
// block may be free, at most MaxRun. No waiting request can be admitted before, because the free
// memory only shrinks.
func (e *Engine) runLength() int {
	steps := e.cfg.MaxRun
	for _, s := range e.running {
		steps = min(steps, s.Output-s.produced)
	}
	for steps > 1 && e.newBlocks(steps) > e.kv.available() {
		steps /= 2
	}
	return max(steps, 1)
}

// newBlocks returns the number of blocks that the running requests need, beyond those they have, to
// decode for the given number of iterations.
func (e *Engine) newBlocks(steps int) int {
	blocks := 0
	for _, s := range e.running {
		blocks += max(0, blocksFor(s.computed+steps)-s.blocks())
	}
	return blocks
}

// noiseAt returns the noise of the iteration with index i in the run, a factor of its time.
func (e *Engine) noiseAt(i int) float64 {
	if e.cfg.Noise == 0 {
		return 1
	}
	if i == len(e.noise) {
		a, b := portable.Normals(e.rng)
		e.noise = append(e.noise, portable.Exp(e.cfg.Noise*a), portable.Exp(e.cfg.Noise*b))
	}
	return e.noise[i]
}

// endedIterations returns the number of iterations of the present run that have ended by now.
func (e *Engine) endedIterations(now time.Time) int {
	elapsed := now.Sub(e.report.Start)
	n, found := slices.BinarySearch(e.ends, elapsed)
	if found {
		n++
	}
	return min(n, len(e.ends))
}

// truncateRun ends the present run with the iteration that is in progress now.
func (e *Engine) truncateRun(now time.Time) {
	if !e.busy || len(e.ends) == 1 {
		return
	}
	steps := min(e.endedIterations(now)+1, len(e.ends))
	e.ends = e.ends[:steps]
	e.report.Steps = e.report.Steps[:steps]
	e.report.End = e.report.Start.Add(e.ends[steps-1])
}
