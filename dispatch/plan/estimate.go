package plan

// outputMean learns how many tokens the lines of a model bring, so that work can be counted before it is done.
type outputMean struct {
	mean float64
	seen int
}

// outputMemory is how many answers the mean looks back on once it has seen that many: several times what is under way at once, for of
// what starts together the short answers come first and the long ones last.
const outputMemory = 5000

func (o *outputMean) learn(tokens int) {
	if o.seen < outputMemory {
		o.seen++
	}
	o.mean += (float64(tokens) - o.mean) / float64(o.seen)
}

// asMany is how many answers of a job what is known of its model counts for: jobs of one model may be as different as a yes or no and
// an essay, so a job's own answers soon tell more.
const asMany = 8

// expectOutput is the output that a line of a job will likely bring: as those before it, of the job and of its model; no more than its
// limit. Before any was answered it is the configured number.
func (p *Planner) expectOutput(j *job, limit float64) float64 {
	expected := float64(p.cfg.Cost.OutputTokens)
	if o := p.outputs[j.key.Model]; o != nil && o.seen > 0 {
		expected = o.mean
	}
	seen := float64(j.output.seen)
	expected += (j.output.mean - expected) * seen / (seen + asMany)
	if limit > 0 {
		expected = min(expected, limit)
	}
	return expected
}

func (c CostConfig) work(promptTokens, outputTokens float64) float64 {
	return float64(c.PromptToken*promptTokens) + float64(c.OutputToken*outputTokens)
}
