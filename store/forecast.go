package store

import "time"

// Verdict says whether a batch will meet its deadline. Users see it.
type Verdict string

const (
	VerdictOK         Verdict = "ok"         // met
	VerdictAtRisk     Verdict = "at_risk"    // met if nothing goes worse than expected
	VerdictInfeasible Verdict = "infeasible" // missed even with every allowed replica
)

// Verdicts lists all verdicts, the best first.
var Verdicts = []Verdict{VerdictOK, VerdictAtRisk, VerdictInfeasible}

// Forecast is the expected end of a batch. The zero value: nothing is known.
type Forecast struct {
	Verdict Verdict
	// Finish is when the last line is expected to be done. Zero: not within the time that is
	// planned.
	Finish time.Time `json:",omitzero"`
	// Earliest and Latest bound Finish: of ten batches about eight end between them. Zero: unknown.
	Earliest time.Time `json:",omitzero"`
	Latest   time.Time `json:",omitzero"`
	// OneMore is Finish if one more replica were started now; Finish if that does not help.
	OneMore time.Time `json:",omitzero"`
}

// Seconds returns the forecast with its times in whole seconds of UTC, rounded up, so that equal
// forecasts are equal as values.
func (f Forecast) Seconds() Forecast {
	for _, t := range []*time.Time{&f.Finish, &f.Earliest, &f.Latest, &f.OneMore} {
		if !t.IsZero() {
			*t = time.Unix(t.Add(time.Second-1).Unix(), 0).UTC()
		}
	}
	return f
}

// Near reports whether g says the same to a user as f: the verdict, and times that are as far from
// now, within a twentieth.
func (f Forecast) Near(g Forecast, now time.Time) bool {
	near := func(a, b time.Time) bool {
		if a.IsZero() || b.IsZero() {
			return a.IsZero() && b.IsZero()
		}
		ahead := max(a.Sub(now), b.Sub(now))
		return 20*a.Sub(b).Abs() <= ahead
	}
	return f.Verdict == g.Verdict && near(f.Finish, g.Finish) && near(f.Earliest, g.Earliest) &&
		near(f.Latest, g.Latest) && near(f.OneMore, g.OneMore)
}

// Join returns the forecast of lines of which f and g each describe a part: the worse verdict and
// the later times.
func (f Forecast) Join(g Forecast) Forecast {
	switch {
	case f == Forecast{}:
		return g
	case g == Forecast{}:
		return f
	}
	if g.Verdict.worse(f.Verdict) {
		f.Verdict = g.Verdict
	}
	f.Finish = laterOrUnknown(f.Finish, g.Finish)
	f.Earliest = laterOrUnknown(f.Earliest, g.Earliest)
	f.Latest = laterOrUnknown(f.Latest, g.Latest)
	f.OneMore = laterOrUnknown(f.OneMore, g.OneMore)
	return f
}

// rank orders verdicts, the worst last.
func (v Verdict) rank() int {
	switch v {
	case VerdictInfeasible:
		return 3
	case VerdictAtRisk:
		return 2
	case VerdictOK:
		return 1
	}
	return 0
}

func (v Verdict) worse(than Verdict) bool { return v.rank() > than.rank() }

func laterOrUnknown(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return time.Time{}
	}
	if b.After(a) {
		return b
	}
	return a
}
