package costmodel

// Load is a steady interactive load of one engine.
type Load struct {
	Running    float64 // requests that decode
	Context    float64 // KV tokens of all requests together
	PromptRate float64 // prompt tokens computed per second
	PromptMean float64 // mean length of a prompt, computed tokens only
}

// Mix describes the average batch line.
type Mix struct {
	Prompt, Output float64 // tokens
	// Context is the mean number of tokens that a running line attends to. At any moment long
	// answers are more frequent among the running lines than among all lines, so it can exceed the
	// mean over all lines. 0: Prompt + Output/2, which is right if all lines are alike.
	Context float64
}

// MeanContext returns Context, or its default if it is not set.
func (m Mix) MeanContext() float64 {
	if m.Context > 0 {
		return m.Context
	}
	return m.Prompt + m.Output/2
}

// MeanIteration returns the mean time of an iteration, in milliseconds, while the given number of
// batch lines run beside the load.
func (m Model) MeanIteration(load Load, mix Mix, lines float64) float64 {
	alone, share := m.alone(load)
	beyond := max(0, load.Running+lines-m.N0) - max(0, load.Running-m.N0)
	return (alone + lines*m.PerLine(mix) + m.C2*beyond) /
		(1 - share)
}

// Lines returns the number of batch lines that can run beside the load so that the mean iteration
// takes target milliseconds. It is negative if the load alone takes longer.
func (m Model) Lines(load Load, mix Mix, target float64) float64 {
	alone, share := m.alone(load)
	left := target*(1-share) - alone
	perLine := m.PerLine(mix)
	free := max(0, m.N0-load.Running) // lines below the knee
	if left <= free*perLine {
		return left / perLine
	}
	return free + (left-free*perLine)/(perLine+m.C2)
}

// PerLine returns what one batch line adds to a mean iteration below the knee: its token, its
// context, and its part of the prompts. In a steady state prompts are computed as fast as lines
// finish, Prompt/Output prompt tokens for each iteration of a line.
func (m Model) PerLine(mix Mix) float64 {
	return m.C1 + m.KV*mix.MeanContext() +
		m.PromptToken(mix.Prompt)*mix.Prompt/mix.Output
}

// alone returns the mean time of an iteration without batch lines, and the share of all time that
// interactive prompts take. More prompts arrive during a longer iteration, so the two make
// T = time + T·share.
func (m Model) alone(load Load) (time, share float64) {
	time = m.C0 + m.C1*load.Running +
		m.C2*max(0, load.Running-m.N0) + m.KV*load.Context
	return time, min(m.PromptToken(load.PromptMean)*load.PromptRate/1000, 0.99)
}
