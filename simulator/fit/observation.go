package fit

import (
	"errors"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Observation is an interval whose time is known, with what the engine computed in it. Exact ones
// hold one iteration; the others hold a few, one of them with a prefill chunk that outweighs what
// isn't known about the rest.
type Observation struct {
	Run    string
	Number int64   // of the step at whose start the interval begins
	At     int64   // microseconds since the run's first step
	Length int64   // microseconds from the run's first step to its last
	Time   float64 // milliseconds
	Steps  int     // iterations in the interval
	Work   Work    // of one iteration: decoding, the mean; prefill, the total
	// Counted reports that Time is that of all iterations, as for some seconds of a recording.
	Counted bool
}

// Work is what one iteration computes.
type Work struct {
	Decoding int     // requests, each one token
	Context  float64 // tokens that they attend to
	Chunks   int     // prefill chunks
	Prefill  int     // tokens of the chunks together
	Before   float64 // tokens of context computed before each chunk
}

// Exact reports whether the interval holds one iteration, or a known number of them.
func (o Observation) Exact() bool { return o.Steps == 1 || o.Counted }

// mean returns the time of one of its iterations.
func (o Observation) mean() float64 { return o.Time / float64(o.Steps) }

// Predict returns the cost model's time for the interval, in milliseconds.
func (o Observation) Predict(l costmodel.Model) float64 {
	sum, slopes := 0.0, slopesOf(l)
	for i, x := range o.features(l.N0) {
		sum += x * slopes[i]
	}
	return sum
}

// Ahead is how many steps an engine's scheduler runs ahead of its GPU: with 1, as in vLLM's
// asynchronous scheduling, the tokens of step i are computed between the starts of steps i+1 and
// i+2.
type Ahead int

const (
	AheadUnknown Ahead = -1 // determined from the data
	AheadNone    Ahead = 0
	AheadOne     Ahead = 1
)

// Observations are the usable intervals of a recording of steps.
type Observations struct {
	All      []Observation // ordered by run and step
	Exact    int
	Ahead    Ahead
	Context  ContextSource
	KVTokens int // capacity of the KV cache; 0: not recorded
	MaxSeqs  int // most requests running at once
	MaxBatch int // most tokens in a step
	Runs     int
	Dropped  int // exact iterations left out because there were more than enough
}

// ContextSource is where the context tokens of an observation are from.
type ContextSource string

const (
	ContextRecorded ContextSource = "recorded"       // column context_tokens
	ContextMean     ContextSource = "mean"           // a given mean per decoding request
	ContextBlocks   ContextSource = "kv blocks used" // too low if requests share prefixes
	ContextNone     ContextSource = "unknown"
)

const (
	// chunkInWideGap is the fewest prefill tokens per unseen step for which a gap of several steps
	// is used, and wideGap the most steps of such a gap.
	chunkInWideGap = 64
	wideGap        = 6
	// maxExact is how many exact iterations are enough for a fit; of more, every k-th of a run is
	// taken.
	maxExact = 20_000
)

// Observe returns the intervals that a fit can use. meanContext, above 0, is the mean context of a
// decoding request, for recordings without context_tokens whose requests share prefixes.
func Observe(steps []Step, meanContext float64, ahead Ahead) (Observations, error) {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, compareSteps)
	if ahead == AheadUnknown {
		ahead = findAhead(steps, meanContext)
	}
	obs := observe(steps, meanContext, ahead)
	if obs.Exact == 0 {
		return Observations{}, errors.New(
			"no row has gap_steps 1, so no iteration's time is known: record consecutive steps")
	}
	return obs, nil
}

func observe(steps []Step, meanContext float64, ahead Ahead) Observations {
	obs := Observations{Ahead: ahead, Context: contextSource(steps, meanContext)}
	for start := 0; start < len(steps); {
		end := start + 1
		for end < len(steps) && steps[end].File == steps[start].File &&
			steps[end].Run == steps[start].Run {
			end++
		}
		obs.addRun(steps[start:end], meanContext)
		start = end
	}
	obs.thin()
	return obs
}

func contextSource(steps []Step, mean float64) ContextSource {
	recorded, blocks := true, true
	for _, s := range steps {
		recorded = recorded && s.Context >= 0
		blocks = blocks && s.KVBlocksUsed >= 0
	}
	switch {
	case recorded:
		return ContextRecorded
	case mean > 0:
		return ContextMean
	case blocks:
		return ContextBlocks
	}
	return ContextNone
}

func (o *Observations) addRun(steps []Step, meanContext float64) {
	o.Runs++
	first, last := steps[0], steps[len(steps)-1]
	for i, s := range steps {
		o.MaxSeqs = max(o.MaxSeqs, int(max(s.Running, s.DecodeTokens)))
		o.MaxBatch = max(o.MaxBatch, int(s.PrefillTokens+s.DecodeTokens))
		o.KVTokens = max(o.KVTokens, int(s.KVBlocksTotal)*engine.BlockSize)

		computed, known := s, true
		if o.Ahead == AheadOne {
			if known = i > 0 && steps[i-1].Number == s.Number-1; known {
				computed = steps[i-1]
			}
		}
		w := o.work(computed, meanContext)
		if !known {
			w = w.decodingOnly() // what it prefills is computed in the next interval
		}
		switch {
		case s.GapSteps == 1:
		case s.GapSteps > 1 && s.GapSteps <= wideGap &&
			s.PrefillTokens >= chunkInWideGap*(s.GapSteps-1):
			// the chunk of s is computed within the gap, whether ahead or not
			w = o.work(s, meanContext)
		default:
			continue
		}
		if w.Decoding+w.Prefill == 0 {
			continue // an idle engine
		}
		if s.GapSteps == 1 {
			o.Exact++
		}
		o.All = append(o.All, Observation{
			Run: runKey(s), Number: s.Number, At: s.Start - first.Start,
			Length: last.Start - first.Start,
			Time:   float64(s.Gap) / 1000, Steps: int(s.GapSteps), Work: w,
		})
	}
}

// runKey identifies a run among several files.
func runKey(s Step) string { return s.File + "\x00" + s.Run }

func (w Work) decodingOnly() Work { return Work{Decoding: w.Decoding, Context: w.Context} }

func (o *Observations) work(s Step, meanContext float64) Work {
	w := Work{Decoding: int(s.DecodeTokens), Prefill: int(s.PrefillTokens)}
	switch o.Context {
	case ContextRecorded:
		w.Context = float64(s.Context)
	case ContextMean:
		w.Context = meanContext * float64(s.DecodeTokens)
	case ContextBlocks: // of running requests; those that prefill hold some of it
		w.Context = float64(s.KVBlocksUsed*engine.BlockSize) * float64(s.DecodeTokens) / float64(
			max(1, s.DecodeTokens+s.PrefillReqs))
	case ContextNone: // the file has none
	}
	if w.Prefill > 0 {
		w.Chunks = int(max(1, s.PrefillReqs))
		w.Before = float64(max(0, s.PrefillContext))
	}
	return w
}

// thin keeps every k-th exact iteration of a run.
func (o *Observations) thin() {
	every := (o.Exact + maxExact - 1) / maxExact
	if every <= 1 {
		return
	}
	seen, kept := 0, o.All[:0]
	for _, x := range o.All {
		if x.Exact() {
			seen++
			if seen%every != 0 {
				o.Dropped++
				o.Exact--
				continue
			}
		}
		kept = append(kept, x)
	}
	o.All = kept
}

// findAhead fits the iterations whose own tokens and whose predecessor's are known under both
// assumptions and returns the better one. If prefill is too rare to decide, it returns AheadOne:
// vLLM's default, and the smaller error if wrong.
func findAhead(steps []Step, meanContext float64) Ahead {
	type key struct {
		run    string
		number int64
	}
	known := map[key]bool{}
	for i := 1; i < len(steps); i++ {
		a, b := steps[i-1], steps[i]
		if runKey(a) == runKey(b) && a.Number == b.Number-1 && b.GapSteps == 1 {
			known[key{runKey(b), b.Number}] = true
		}
	}
	loss := func(ahead Ahead) (loss float64, prefilling int) {
		both := slices.DeleteFunc(observe(steps, meanContext, ahead).All, func(o Observation) bool {
			return !o.Exact() || !known[key{o.Run, o.Number}]
		})
		for _, o := range both {
			if o.Work.Prefill > 0 {
				prefilling++
			}
		}
		m := newModel(both, noKnee, costmodel.Model{}, []term{perIteration, perToken, perPrompt})
		return m.robust().scale, prefilling
	}
	one, prefilling := loss(AheadOne)
	if none, _ := loss(AheadNone); prefilling >= minActive && none < one {
		return AheadNone
	}
	return AheadOne
}
