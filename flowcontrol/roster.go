package flowcontrol

import (
	"cmp"
	"slices"
	"time"
)

// member is a runner that has joined.
type member struct {
	id        string
	heldUntil time.Time // no new lines until then
	heldFor   Reason
	sheds     int // since a line was answered

	// What aimd has learnt about it.
	limit   int
	answers int       // since the limit last changed, while the limit was in use
	lastCut time.Time // when the limit was last cut; zero: never

	probed *probed // what probe has; nil with other policies
}

// roster is the runners of a pool, sorted by ID, with what all controllers have in common: holds
// and the limit per pool.
type roster struct {
	perPool int // 0: no limit
	members []*member
	granted []RunnerAllowance // the last allowance's Runners
}

func (r *roster) search(id string) (int, bool) {
	return slices.BinarySearchFunc(r.members, id, func(m *member, id string) int {
		return cmp.Compare(m.id, id)
	})
}

// find is nil for a runner that has not joined.
func (r *roster) find(id string) *member {
	if i, joined := r.search(id); joined {
		return r.members[i]
	}
	return nil
}

// join adds a runner with the given limit; false if it is there already.
func (r *roster) join(id string, limit int) bool {
	i, joined := r.search(id)
	if !joined {
		r.members = slices.Insert(r.members, i, &member{id: id, limit: limit})
	}
	return !joined
}

func (r *roster) leave(id string) bool {
	i, joined := r.search(id)
	if joined {
		r.members = slices.Delete(r.members, i, i+1)
	}
	return joined
}

// hold keeps new lines from m for as long as it asked, or for PauseAfterShed and its doubles if it
// didn't say. A longer hold is not shortened.
func (m *member) hold(now time.Time, retryAfter time.Duration) bool {
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

func (m *member) held(now time.Time) bool { return now.Before(m.heldUntil) }

// allowance grants each runner its limit, or nothing while it is held, and shares the pool's limit
// out when that is less. reason says why a runner's limit is not higher.
func (r *roster) allowance(now time.Time, reason func(*member) Reason) Allowance {
	r.granted = r.granted[:0]
	a := Allowance{Pool: NoLimit, Reason: ReasonNoRunner}
	for _, m := range r.members {
		granted := RunnerAllowance{Runner: m.id, Lines: m.limit, Prompt: NoLimit, Reason: reason(m)}
		if m.held(now) {
			granted.Lines, granted.Reason = 0, m.heldFor
			if a.Until.IsZero() || m.heldUntil.Before(a.Until) {
				a.Until = m.heldUntil
			}
		}
		r.granted = append(r.granted, granted)
	}
	if r.perPool > 0 {
		a.Pool = r.perPool
		shareOut(r.granted, r.perPool)
	}
	a.Runners = r.granted
	if len(r.members) > 0 {
		a.Reason = commonest(r.granted)
	}
	return a
}

// shareOut cuts the grants down to total lines: equal parts for all who want as much, no more than
// wanted for the others.
func shareOut(grants []RunnerAllowance, total int) {
	modestFirst := make([]*RunnerAllowance, len(grants))
	for i := range grants {
		modestFirst[i] = &grants[i]
	}
	slices.SortStableFunc(modestFirst, func(a, b *RunnerAllowance) int {
		return cmp.Compare(a.Lines, b.Lines)
	})
	for i, grant := range modestFirst {
		if part := total / (len(grants) - i); part < grant.Lines {
			grant.Lines, grant.Reason = part, ReasonPoolLimit
		}
		total -= grant.Lines
	}
}

// commonest is the pool's reason: its own limit if that binds, else the reason of most runners; of
// equals the first by runner ID.
func commonest(grants []RunnerAllowance) Reason {
	type votes struct {
		reason Reason
		count  int
	}
	// there are few, and a map would cost more than all the rest of an allowance
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
