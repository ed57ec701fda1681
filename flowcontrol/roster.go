package flowcontrol

import (
	"cmp"
	"slices"
	"time"
)

// Member is a runner that has joined, with the state S that a policy has of it.
type Member[S any] struct {
	ID    string
	State S

	heldUntil time.Time // no new lines until then
	heldFor   Reason
	sheds     int // since a line was answered
}

// Answered notes that the runner answered a line, so that the next pause is a short one again.
func (m *Member[S]) Answered() { m.sheds = 0 }

// Hold keeps new lines from the runner for as long as it asked, or for PauseAfterShed and its
// doubles if it named no time. It does not shorten a longer hold; changed reports whether it
// lengthened one.
func (m *Member[S]) Hold(now time.Time, retryAfter time.Duration) (changed bool) {
	reason := ReasonRetryAfter
	if retryAfter <= 0 {
		retryAfter, reason = min(PauseAfterShed<<min(m.sheds, 10), LongestPause), ReasonShed
	}
	m.sheds++
	until := now.Add(min(retryAfter, LongestHold))
	if !until.After(m.heldUntil) {
		return false
	}
	m.heldUntil, m.heldFor = until, reason
	return true
}

// Held reports whether the runner gets no new lines now.
func (m *Member[S]) Held(now time.Time) bool { return now.Before(m.heldUntil) }

// HeldUntil returns when the hold ends and its reason. Both are of use only while Held is true.
func (m *Member[S]) HeldUntil() (time.Time, Reason) { return m.heldUntil, m.heldFor }

// Roster holds the runners of a pool with the state S that a policy has of each. It does what all
// controllers have in common: pauses after sheds, and the limit per pool.
type Roster[S any] struct {
	// PerPool is the greatest number of lines on the pool; 0: no limit.
	PerPool int
	// Members are the runners that have joined, sorted by ID.
	Members []*Member[S]

	granted []RunnerAllowance // the last allowance's Runners
}

func (r *Roster[S]) search(id string) (int, bool) {
	return slices.BinarySearchFunc(r.Members, id, func(m *Member[S], id string) int {
		return cmp.Compare(m.ID, id)
	})
}

// Find returns the runner, or nil if it has not joined.
func (r *Roster[S]) Find(id string) *Member[S] {
	if i, joined := r.search(id); joined {
		return r.Members[i]
	}
	return nil
}

// Join adds a runner; false if it has joined already.
func (r *Roster[S]) Join(id string, state S) bool {
	i, joined := r.search(id)
	if !joined {
		r.Members = slices.Insert(r.Members, i, &Member[S]{ID: id, State: state})
	}
	return !joined
}

// Leave removes a runner; false if it has not joined.
func (r *Roster[S]) Leave(id string) bool {
	i, joined := r.search(id)
	if joined {
		r.Members = slices.Delete(r.Members, i, i+1)
	}
	return joined
}

// Observe does what most policies do with an observation: runners join, with the state fresh, and
// leave; an answer ends a series of sheds, and a shed holds the runner. It returns whether that
// changed the allowance, and the runner for what else the policy does with the observation; nil if
// the runner has just joined, has left, or is unknown.
func (r *Roster[S]) Observe(now time.Time, o Observation, fresh S) (m *Member[S], changed bool) {
	switch o := o.(type) {
	case *RunnerJoined:
		return nil, r.Join(o.Runner, fresh)
	case *RunnerLeft:
		return nil, r.Leave(o.Runner)
	}
	if m = r.Find(o.About()); m == nil {
		return nil, false
	}
	switch o := o.(type) {
	case *Answered:
		m.Answered()
	case *Shed:
		changed = m.Hold(now, o.RetryAfter)
	}
	return m, changed
}

// Allowance grants each runner the lines that grant returns, or none while it is held, and shares
// out the pool's limit where that is less. The reason says why a runner's lines are not more.
func (r *Roster[S]) Allowance(
	now time.Time, grant func(*Member[S]) (lines int, reason Reason),
) Allowance {
	r.granted = r.granted[:0]
	var until time.Time
	for _, m := range r.Members {
		lines, reason := grant(m)
		granted := RunnerAllowance{Runner: m.ID, Lines: lines, Prompt: NoLimit, Reason: reason}
		if m.Held(now) {
			granted.Lines, granted.Reason = 0, m.heldFor
			if until.IsZero() || m.heldUntil.Before(until) {
				until = m.heldUntil
			}
		}
		r.granted = append(r.granted, granted)
	}
	a := Pooled(r.granted, r.PerPool)
	a.Until = until
	return a
}

// Pooled returns the allowance of a pool whose runners are granted this, sorted by ID. A limit per
// pool other than 0 cuts the grants down, in place.
func Pooled(grants []RunnerAllowance, perPool int) Allowance {
	a := Allowance{Pool: NoLimit, Runners: grants, Reason: ReasonNoRunner}
	if perPool > 0 {
		a.Pool = perPool
		shareOut(grants, perPool)
	}
	if len(grants) > 0 {
		a.Reason = commonest(grants)
	}
	return a
}

// shareOut cuts the grants down to total lines: equal parts for all that want as much, no more than
// wanted for the others.
func shareOut(grants []RunnerAllowance, total int) {
	fewestFirst := make([]*RunnerAllowance, len(grants))
	for i := range grants {
		fewestFirst[i] = &grants[i]
	}
	slices.SortStableFunc(fewestFirst, func(a, b *RunnerAllowance) int {
		return cmp.Compare(a.Lines, b.Lines)
	})
	for i, grant := range fewestFirst {
		if part := total / (len(grants) - i); part < grant.Lines {
			grant.Lines, grant.Reason = part, ReasonPoolLimit
		}
		total -= grant.Lines
	}
}

// commonest returns the pool's reason: its own limit if that binds, else the reason of most
// runners; of equals the first by runner ID.
func commonest(grants []RunnerAllowance) Reason {
	type votes struct {
		reason Reason
		count  int
	}
	// A slice: there are few reasons, and a map costs more than the rest of an allowance.
	counted := make([]votes, 0, 8)
	most := 0
	for _, grant := range grants {
		if grant.Reason == ReasonPoolLimit {
			return ReasonPoolLimit
		}
		i := slices.IndexFunc(counted, func(v votes) bool { return v.reason == grant.Reason })
		if i < 0 {
			i = len(counted)
			counted = append(counted, votes{reason: grant.Reason})
		}
		counted[i].count++
	}
	for i, v := range counted { // in the order of their first runners
		if v.count > counted[most].count {
			most = i
		}
	}
	return counted[most].reason
}
