package scheduler_test

import (
	"math"
	"slices"
)

// slowShare is a simple implementation of fair sharing to compare with. Its flows have names.
type slowShare struct {
	quantum   float64
	remembers bool // what a flow has got beyond the others, after it was removed
	eager     func(flow string) bool
	flows     []*slowFlow // in the order in which they came
	now       float64
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
	before func(a, b string) bool, behind func(*slowFlow) float64, match func(*slowFlow) bool,
) (least *slowFlow) {
	for _, f := range s.flows {
		if f.offered && match(f) && (least == nil || behind(f) < behind(least) ||
			behind(f) == behind(least) && before(f.name, least.name)) {
			least = f
		}
	}
	return least
}

func (s *slowShare) time(f *slowFlow) float64 { return f.time }

// round is what settled flows are ordered by.
func (s *slowShare) round(f *slowFlow) float64 {
	if s.quantum == 0 {
		return f.time
	}
	return math.Floor(f.time / s.quantum)
}

func (s *slowShare) young(f *slowFlow) bool {
	return f.served < 0.05*s.quantum || s.eager(f.name)
}

func (s *slowShare) settled(f *slowFlow) bool { return !s.young(f) }

func (s *slowShare) top(before func(a, b string) bool) string {
	young, settled := s.least(before, s.time, s.young), s.least(before, s.round, s.settled)
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
		last := math.Inf(1)
		if young := s.least(before, s.time, s.young); young != nil {
			last = young.time
		}
		if settled := s.least(before, s.round, s.settled); settled != nil {
			last = min(last, settled.time)
		}
		s.now = max(s.now, last)
	}
	f.time += work / weight
	f.served += work / weight
}
