package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// prefill predicts the longest time of an engine for the prompt that is next. The zero value is an
// unknown engine.
type prefill struct{ engine flowcontrol.Engine }

const (
	// plausiblePrefill is the rate in tokens per second that an unknown engine attains: large
	// models on few GPUs are the slowest. plausibleIteration is the time of an iteration where no
	// gaps between tokens are known.
	plausiblePrefill   = 4000
	plausibleIteration = 100 * time.Millisecond
	// prefillMargin is the time of a prompt as a multiple of that by the cost model, because other
	// requests decode in the same iterations.
	prefillMargin = 1.3
)

// took returns the time for the tokens of a prompt that are not cached.
func (p prefill) took(prompt, uncached int32) time.Duration {
	m := p.engine.CostModel
	if !m.Known() {
		return time.Duration(uncached) * (time.Second / plausiblePrefill)
	}
	each := m.PromptToken(float64(prompt))
	if budget := p.engine.MaxBatchedTokens; budget > 0 {
		each += m.C0 / float64(budget)
	}
	ms := prefillMargin * each * float64(uncached)
	return time.Duration(ms * float64(time.Millisecond))
}
