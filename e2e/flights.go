package e2e

import (
	"cmp"
	"slices"
	"time"
)

// Flights are sendings by time of begin.
type Flights []Sending

// Flights lists the sendings of lines; all if lines has no bodies.
func (s *Stub) Flights(lines Lines) Flights {
	var flights Flights
	ledger := s.Ledger()
	if len(lines.Bodies) == 0 {
		for _, sendings := range ledger {
			flights = append(flights, sendings...)
		}
	}
	for _, body := range lines.Bodies {
		flights = append(flights, ledger[Digest([]byte(body))]...)
	}
	slices.SortFunc(flights, func(a, b Sending) int { return a.Begin.Compare(b.Begin) })
	return flights
}

// Most is the largest number of requests that were under way at once, counting moments that during
// holds for; nil: all.
func (f Flights) Most(during func(time.Time) bool) (most int) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, sending := range f {
		changes = append(changes, change{sending.Begin, 1})
		if !sending.End.IsZero() {
			changes = append(changes, change{sending.End, -1})
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

// After are those that began after a moment.
func (f Flights) After(t time.Time) Flights {
	i, _ := slices.BinarySearchFunc(f, t, func(s Sending, t time.Time) int {
		return s.Begin.Compare(t)
	})
	return f[i:]
}

// Sender is the daemon that sent most of them; empty: nothing was sent.
func (f Flights) Sender() (node string) {
	sent := map[string]int{}
	for _, sending := range f {
		if sent[sending.Node]++; sent[sending.Node] > sent[node] || node == "" {
			node = sending.Node
		}
	}
	return node
}

// Repeats is how many of them went out for a line that had been sent before.
func (s *Stub) Repeats() (n int) {
	for _, sendings := range s.Ledger() {
		n += len(sendings) - 1
	}
	return n
}
