package flowcontrol

// Judge is a Controller that counts the interactive requests of its pool, and estimates the number
// of them that batch work has made late.
type Judge interface {
	// Judged returns what has been counted since the controller began. It changes no later
	// decision.
	Judged() Judged
}

// Judged counts interactive requests by the time of their first token, and by the mean time between
// their further tokens.
type Judged struct{ FirstTokens, Tokens Judgement }

// Judgement counts interactive requests by one of their times.
type Judgement struct {
	// Requests is the number that had the time, and Late that of those for which it exceeded the
	// objective, with batch lines beside them as they ran.
	Requests, Late float64
	// Estimated is the number of the Requests for which Added is known, and Added an estimate of
	// those that batch work has made late.
	Estimated, Added float64
}

// Add counts requests, those of them that were late, and those that were late because of batch
// work.
func (j *Judgement) Add(requests, late, added float64) {
	j.Requests += requests
	j.Late += late
	j.Estimated += requests
	j.Added += added
}

// Growth turns an Attainment, whose counts only grow, into what was counted since the last one.
type Growth struct {
	Last  Attainment
	Known bool // Last is the last one
}

// Since returns what was counted since the last call; ok is false if a counter is absent or has
// started again.
func (g *Growth) Since(a Attainment) (requests, late float64, ok bool) {
	if !(a.Requests >= 0) || !(a.Late >= 0) {
		return 0, 0, false
	}
	before := g.Last
	grown := g.Known && a.Requests >= before.Requests && a.Late >= before.Late
	g.Last, g.Known = a, true
	if !grown {
		return 0, 0, false
	}
	return a.Requests - before.Requests, a.Late - before.Late, true
}
