package headroom

// assumedChunk is the greatest number of tokens of an iteration if none is configured.
const assumedChunk = 2048

// chunk returns the greatest number of tokens that an iteration computes.
func (c *Controller) chunk() float64 {
	if n := c.engine.MaxBatchedTokens; n > 0 {
		return float64(n)
	}
	return assumedChunk
}

// passes returns the number of iterations in which the prompt of an interactive request is
// computed. Requests that decode take a token of every iteration.
func (c *Controller) passes(decoding float64) float64 {
	chunk := c.chunk()
	return max(1, c.first.prompts.mean()/max(chunk-decoding, chunk/16))
}

// slowdown estimates the factor by which a first token takes longer on a runner with some lines and
// waiting prompt tokens than without them. alone is the time of its iterations without them, in
// milliseconds. A request waits for half an iteration, and then for those in which its prompt is
// computed.
func (c *Controller) slowdown(in *interactive, alone, lines, waiting float64) float64 {
	running, token := in.running.mean, c.fit.perToken()
	prompt := c.first.prompts.mean() * token
	with := alone + lines*c.fit.perSequence()
	before := c.firstAlone(in, alone)
	after := (0.5+c.passes(running+lines))*with + prompt +
		waiting*token
	return after / before
}

// firstAlone estimates the time to first token without batch work, in milliseconds.
func (c *Controller) firstAlone(in *interactive, alone float64) float64 {
	prompt := c.first.prompts.mean() * c.fit.perToken()
	return (0.5+c.passes(in.running.mean))*alone + prompt
}

// poolFirstAlone returns the mean of it over the pool's runners; 0: there are none.
func (c *Controller) poolFirstAlone() float64 {
	sum, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 {
			weight := max(r.interactive.running.mean, 0.01)
			sum += weight * c.firstAlone(&r.interactive, c.timeAlone(r))
			n += weight
		}
	}
	return sum / max(n, 0.01)
}

// poolSlowdown returns the mean slowdown of first tokens on the pool's runners, with the prompts of
// batch lines that wait, and without them.
func (c *Controller) poolSlowdown() (all, byLines float64) {
	n := 0.0
	for _, m := range c.roster.Members {
		r := m.State
		if r.packed > 0 {
			continue
		}
		weight := max(r.interactive.running.mean, 0.01)
		in, alone, lines := &r.interactive, c.timeAlone(r), float64(r.own.lines)
		all += weight * c.slowdown(in, alone, lines, float64(r.own.prefilling))
		byLines += weight * c.slowdown(in, alone, lines, 0)
		n += weight
	}
	if n == 0 {
		return 1, 1
	}
	return max(1, all/n), max(1, byLines/n)
}

// allowedSlowdown returns by what factor first tokens may be delayed now.
func (c *Controller) allowedSlowdown() float64 {
	if c.slo.Relative() {
		return c.slo.Slowdown
	}
	return min(c.first.slowdown,
		usualSlowdown+(maxSlowdown-usualSlowdown)*(1-c.unknown()))
}

// harmlessShare of an objective for first tokens is so short that no burst makes it late.
const harmlessShare = 0.01

// linesByFirstTokens returns the greatest number of lines on a runner with which first tokens stay
// in time.
func (c *Controller) linesByFirstTokens(r *runner) float64 {
	alone := c.timeAlone(r)
	allowed := c.allowedSlowdown()
	if first := c.firstAlone(&r.interactive, alone); !c.slo.Relative() && first > 0 {
		allowed = max(allowed, harmlessShare*milliseconds(c.slo.TTFT)/first)
	}
	allows := func(lines float64) bool {
		return c.slowdown(&r.interactive, alone, lines, 0) <= allowed
	}
	low, high := 0.0, c.perRunner(r)
	if r.opaque() || allows(high) {
		return high
	}
	for range 8 { // to within two lines of 512
		if lines := (low + high) / 2; allows(lines) {
			low = lines
		} else {
			high = lines
		}
	}
	if low < 1 && allows(1) {
		return 1
	}
	return low
}

// promptWait returns the mean time that a first token waits for prompts of batch lines, in seconds.
func (c *Controller) promptWait() float64 {
	tokens, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 {
			weight := max(r.interactive.running.mean, 0.01)
			tokens += weight * float64(r.own.prefilling)
			n += weight
		}
	}
	if n == 0 {
		return 0
	}
	return tokens / n * c.fit.perToken() / 1000
}
