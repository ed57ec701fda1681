package e2e

import (
	"cmp"
	"slices"
	"time"
)

// AttemptList is a list of attempts, ordered by their beginning.
type AttemptList []Attempt

// AttemptList returns the attempts of lines; all attempts if lines has no bodies.
func (s *Stub) AttemptList(lines Lines) AttemptList {
	var attempts AttemptList
	ledger := s.Ledger()
	if len(lines.Bodies) == 0 {
		for _, ofBody := range ledger {
			attempts = append(attempts, ofBody...)
		}
	}
	for _, body := range lines.Bodies {
		attempts = append(attempts, ledger[Digest([]byte(body))]...)
	}
	slices.SortFunc(attempts, func(a, b Attempt) int { return a.Begin.Compare(b.Begin) })
	return attempts
}

// Most returns the highest number of requests in flight at once, at the times for which during
// returns true; nil: at all times.
func (f AttemptList) Most(during func(time.Time) bool) (most int) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, attempt := range f {
		changes = append(changes, change{attempt.Begin, 1})
		if !attempt.End.IsZero() {
			changes = append(changes, change{attempt.End, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by))
	})
	now := 0
	for _, c := range changes {
		if now += c.by; now > most && (during == nil || during(c.at)) {
			most = now
		}
	}
	return most
}

// After returns the attempts that began after a time.
func (f AttemptList) After(t time.Time) AttemptList {
	i, _ := slices.BinarySearchFunc(f, t, func(s Attempt, t time.Time) int {
		return s.Begin.Compare(t)
	})
	return f[i:]
}

// byLine returns the attempts of each line of each batch.
func (f AttemptList) byLine() map[string]AttemptList {
	lines := map[string]AttemptList{}
	for _, attempt := range f {
		lines[attempt.Line] = append(lines[attempt.Line], attempt)
	}
	return lines
}

// Sender returns the daemon that sent most of them; empty: nothing was sent.
func (f AttemptList) Sender() (node string) {
	sent := map[string]int{}
	for _, attempt := range f {
		if sent[attempt.Node]++; sent[attempt.Node] > sent[node] || node == "" {
			node = attempt.Node
		}
	}
	return node
}

// Repeats returns the number of attempts for lines that had been sent before.
func (s *Stub) Repeats() (n int) {
	for _, attempts := range s.AttemptList(Lines{}).byLine() {
		n += len(attempts) - 1
	}
	return n
}
