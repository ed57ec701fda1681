package headroom

import ()

// learnedFit are the corrections of the cost model.
type learnedFit struct {
	Factor     [3]float64    `json:"factor"`
	Covariance [3][3]float64 `json:"covariance"`
}

func (l *learnedFit) valid() bool {
	for i := range 3 {
		if !within(-1, 1, l.Covariance[i][:]...) || l.Covariance[i][i] < 0 {
			return false
		}
	}
	return within(0, maxFigure, l.Factor[:]...)
}

func (f *costFit) learn(l learnedFit, trust float64) {
	if l.Factor == ([3]float64{}) {
		return
	}
	correlated := positive(l.Covariance)
	for i := range 3 {
		factor := min(max(l.Factor[i], 1/f.maxCorrection), f.maxCorrection)
		f.factor[i] = 1 + trust*(factor-1)
		for j := range 3 {
			if i == j || correlated {
				f.covariance[i][j] += trust * (l.Covariance[i][j] -
					f.covariance[i][j])
			}
		}
	}
}

// positive reports whether a symmetric matrix is positive definite, as a covariance is.
func positive(m [3][3]float64) bool {
	for i := range 3 {
		for j := range i {
			if m[i][j] != m[j][i] {
				return false
			}
		}
	}
	minor := m[0][0]*m[1][1] - m[0][1]*m[0][1]
	a := m[1][1]*m[2][2] - m[1][2]*m[1][2]
	b := m[0][1]*m[2][2] - m[1][2]*m[0][2]
	c := m[0][1]*m[1][2] - m[1][1]*m[0][2]
	whole := m[0][0]*a - m[0][1]*b +
		m[0][2]*c
	return m[0][0] > 0 && minor > 0 && whole > 0
}

// learnedSizes are the sizes of batch lines.
type learnedSizes struct {
	Prompt, Output, Compute, Expected, LatestPrompt, LatestOutput, LatestLong, Context,
	Square, ComputeSquare, Apart, ApartSquare float64
	Started, Seen, Answers int
}

func (l *learnedSizes) valid() bool {
	return within(0, maxFigure, l.Prompt, l.Output, l.Compute, l.Expected, l.LatestPrompt,
		l.LatestOutput, l.LatestLong, l.Context, l.Apart) &&
		within(0, maxFigure*maxFigure, l.Square, l.ComputeSquare, l.ApartSquare) &&
		within(0, maxFigure, float64(l.Started), float64(l.Seen), float64(l.Answers))
}

func (s *lineSizes) learned() learnedSizes {
	return learnedSizes{s.prompt, s.output, s.compute, s.expected, s.latestPrompt, s.latestOutput,
		s.latestLong, s.context.mean, s.context.square, s.computeSquare, s.apart.mean,
		s.apart.square, s.started, s.seen, s.answers}
}

func (s *lineSizes) learn(l learnedSizes, trust float64) {
	few := func(n int) int { return int(trust * float64(n)) }
	started, seen := min(few(l.Started), sizesWindow), min(few(l.Seen), sizesWindow)
	if started == 0 || seen == 0 || l.Prompt < 1 || l.Output < 1 || l.Compute < 1 {
		return
	}
	context, apart := heldTokens{l.Context, l.Square}, heldTokens{l.Apart, l.ApartSquare}
	if l.ApartSquare == 0 { // it was not recorded
		apart = context
	}
	*s = lineSizes{l.Prompt, l.Output, l.Compute, l.Expected, l.LatestPrompt, l.LatestOutput,
		l.LatestLong, context, apart,
		max(l.ComputeSquare, l.Compute*l.Compute),
		started, seen, few(l.Answers)}
}
