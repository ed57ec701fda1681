package flowcontrol

// Law predicts the time of an engine's iteration, in milliseconds, for loads that stand still:
//
//	T = C0 + C1·n + C2·max(0, n-N0) + KV·S + prefill
//
// n counts the tokens of the iteration, S the context tokens that decoding requests attend to.
// tidefill profile fit measures the coefficients. A law need not be true to be useful: it says
// where to step to when the load changes, and token gaps correct it.
type Law struct {
	// C0 is what every iteration costs.
	C0 float64 `yaml:"c0"`
	// C1 is for each token.
	C1 float64 `yaml:"c1"`
	// C2 is for each token beyond N0, in addition.
	C2 float64 `yaml:"c2"`
	// N0 is the knee, in tokens: from there on arithmetic bounds an iteration, before it the
	// reading of weights.
	N0 float64 `yaml:"n0"`
	// KV is for each token of context.
	KV float64 `yaml:"kv"`
	// P1 is for each prefill token.
	P1 float64 `yaml:"p1"`
	// P2 is for each prefill token and each token of its context.
	P2 float64 `yaml:"p2"`
}

// Load is what a runner carries of interactive traffic.
type Load struct {
	Running    float64 // requests
	Context    float64 // tokens in KV, all requests together
	PromptRate float64 // prompt tokens computed a second
	PromptMean float64 // of a request, computed
}

// Mix is what a batch line is like on average.
type Mix struct {
	Prompt, Output float64 // tokens
	// Context is how many tokens a line attends to, on average over the lines that run at one time,
	// among which those of long answers are met more often. 0: Prompt + Output/2, which is right
	// where all lines are alike.
	Context float64
}

func (m Mix) context() float64 {
	if m.Context > 0 {
		return m.Context
	}
	return m.Prompt + float64(m.Output/2)
}

// PromptToken is the cost of computing one prompt token of a prompt of the given length. Chunks of
// prompts make iterations large, so the token is one beyond the knee.
func (l Law) PromptToken(prompt float64) float64 {
	return l.C1 + l.C2 + l.P1 +
		float64(l.P2*prompt/2)
}

// each is what a line adds to an iteration below the knee: its sequence, its context, and its part
// of the prompts. These are computed as fast as requests leave and come: for each of a line's
// Output iterations, Prompt/Output prompt tokens.
func (l Law) each(mix Mix) float64 {
	return l.C1 + float64(l.KV*mix.context()) +
		float64(l.PromptToken(mix.Prompt)*mix.Prompt)/mix.Output
}

// without is the iteration without batch lines, and the share of the time that interactive prompts
// take in addition. It grows with the time they have to come in: T = without + T·share.
func (l Law) without(load Load) (without, share float64) {
	return l.C0 + float64(l.C1*load.Running) + float64(l.C2*max(0, load.Running-l.N0)) +
			float64(l.KV*load.Context),
		min(float64(l.PromptToken(load.PromptMean)*load.PromptRate)/1000, 0.99)
}

// Iteration is the mean time of an iteration in which lines batch lines run beside the load.
func (l Law) Iteration(load Load, mix Mix, lines float64) float64 {
	without, share := l.without(load)
	beyond := max(0, load.Running+lines-l.N0) - max(0, load.Running-l.N0)
	return (without + float64(lines*l.each(mix)) + float64(l.C2*beyond)) / (1 - share)
}

// Lines is how many batch lines may run beside the load for an iteration to take target
// milliseconds; negative when the load alone takes longer.
func (l Law) Lines(load Load, mix Mix, target float64) float64 {
	without, share := l.without(load)
	left := float64(target*(1-share)) - without
	each := l.each(mix)
	free := max(0, l.N0-load.Running) // lines below the knee
	if left <= float64(free*each) {
		return left / each
	}
	return free + (left-float64(free*each))/(each+l.C2)
}

// Harvest is how many tokens a second, prompt and output, lines batch lines bring beside the load.
func (l Law) Harvest(load Load, mix Mix, lines float64) float64 {
	if lines <= 0 {
		return 0
	}
	return lines / l.Iteration(load, mix, lines) * 1000 * (1 + mix.Prompt/mix.Output)
}
