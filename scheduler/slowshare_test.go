package scheduler_test

import "slices"

// slowShare is a simple implementation of fair sharing to compare with. Its flows have names.
type slowShare struct {
	quantum    float64
	remembers  bool // what a flow has got beyond the others, after it was removed
	eager      func(flow string) bool
	flows      []*slowFlow // in the order in which they came
	turn       *slowFlow
	began, now float64
}

type slowFlow struct {
	name           string
	time, served   float64
	known, offered bool
}

func newSlowShare(quantum float64, remembers bool) *slowShare {
	return &slowShare{quantum: quantum, remembers: remembers, eager: func(string) bool {
		return false
	}}
}

func (s *slowShare) find(name string) *slowFlow {
	for _, f := range s.flows {
		if f.name == name {
			return f
		}
	}
	return nil
}

// sync adds and removes flows. known holds all, and whether they are offered.
func (s *slowShare) sync(known map[string]bool) {
	for _, f := range slices.Clone(s.flows) {
		offered, known := known[f.name]
		if f.offered && !offered {
			f.offered = false
			if s.turn == f {
				s.turn = nil
			}
		}
		if f.known && known {
			continue
		}
		s.flows = slices.DeleteFunc(s.flows, func(x *slowFlow) bool { return x == f })
		if s.remembers && f.time > s.now {
			s.flows = append(s.flows, &slowFlow{name: f.name, time: f.time, known: known})
		}
	}
	for name, offered := range known {
		f := s.find(name)
		if f == nil {
			f = &slowFlow{name: name, time: s.now, known: true}
			s.flows = append(s.flows, f)
		}
		if offered && !f.offered {
			f.offered = true
			f.time = max(f.time, s.now-s.quantum)
		}
	}
}

func (s *slowShare) arrivedBefore(a, b string) bool {
	return slices.Index(s.flows, s.find(a)) < slices.Index(s.flows, s.find(b))
}

// least returns the flow that is furthest behind, of those that match.
func (s *slowShare) least(
	before func(a, b string) bool, match func(*slowFlow) bool,
) (least *slowFlow) {
	for _, f := range s.flows {
		if f.offered && match(f) && (least == nil || f.time < least.time ||
			f.time == least.time && before(f.name, least.name)) {
			least = f
		}
	}
	return least
}

func (s *slowShare) young(f *slowFlow) bool {
	return f.served < 0.05*s.quantum || s.eager(f.name)
}

func (s *slowShare) settled(f *slowFlow) bool { return !s.young(f) }

// inTurn returns the settled flow that continues its turn.
func (s *slowShare) inTurn() *slowFlow {
	if turn := s.turn; turn != nil && s.settled(turn) && turn.time-s.began < s.quantum {
		return turn
	}
	return nil
}

func (s *slowShare) top(before func(a, b string) bool) string {
	young, settled := s.least(before, s.young), s.least(before, s.settled)
	if turn := s.inTurn(); turn != nil && settled.time >= s.began {
		settled = turn
	}
	switch {
	case young != nil && (settled == nil || young.time < settled.time+s.quantum):
		return young.name
	case settled != nil:
		return settled.name
	}
	return ""
}

func (s *slowShare) charge(
	name string, work, weight float64, before func(a, b string) bool,
) {
	f := s.find(name)
	if f.offered {
		if s.settled(f) && s.top(before) == name && s.inTurn() != f {
			s.turn, s.began = f, f.time
		}
		s.now = max(s.now, s.least(before, func(*slowFlow) bool { return true }).time)
	}
	f.time += work / weight
	f.served += work / weight
}
