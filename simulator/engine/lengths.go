package engine

import "slices"

// Lengths is a histogram of numbers of tokens.
type Lengths struct {
	Bounds []float64
	// Counts has the number of lengths that do not exceed each bound, but the bound before. The
	// last has no bound.
	Counts []uint64
}

// LengthBounds returns the bucket edges of vLLM's histograms of tokens: 1, 2, 5, 10, 20, 50 and so
// on up to a model's context length.
func LengthBounds(modelLen int) (bounds []float64) {
	for power := 1; ; power *= 10 {
		for _, digit := range [...]int{1, 2, 5} {
			if digit*power > modelLen {
				return bounds
			}
			bounds = append(bounds, float64(digit*power))
		}
	}
}

// newLengths returns an empty histogram for a model of that context length.
func newLengths(modelLen int) Lengths {
	bounds := LengthBounds(modelLen)
	return Lengths{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (l *Lengths) add(tokens int) {
	bucket, _ := slices.BinarySearch(l.Bounds, float64(tokens))
	l.Counts[bucket]++
}

// PromptLengths returns the prompt lengths of the finished requests. The result changes with the
// engine; do not change it.
func (e *Engine) PromptLengths() Lengths { return e.prompts }

// AnswerLengths returns the output lengths of the finished requests, like PromptLengths.
func (e *Engine) AnswerLengths() Lengths { return e.answers }
