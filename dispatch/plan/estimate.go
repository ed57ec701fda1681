package plan

// outputMean learns how many tokens the lines of a model bring, so that work can be counted before it is done.
type outputMean struct {
	mean float64
	seen int
}

// outputMemory is how many answers the mean looks back on once it has seen that many.
const outputMemory = 200

func (o *outputMean) learn(tokens int) {
	if o.seen < outputMemory {
		o.seen++
	}
	o.mean += (float64(tokens) - o.mean) / float64(o.seen)
}

// expect is the output a line will likely bring: the mean so far, no more than its own limit.
func (o *outputMean) expect(prior, limit int) float64 {
	expected := float64(prior)
	if o != nil && o.seen > 0 {
		expected = o.mean
	}
	if limit > 0 {
		expected = min(expected, float64(limit))
	}
	return expected
}

func (c CostConfig) work(promptTokens, outputTokens float64) float64 {
	return float64(c.PromptToken*promptTokens) + float64(c.OutputToken*outputTokens)
}
