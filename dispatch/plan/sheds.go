package plan

import "time"

// tally counts how the lines of a model ended on a runner. It shows whether a line that is shed
// again and again is the cause, or whether the runner has no free slot for any line.
type tally struct {
	answered uint32 // with a result, good or bad
	refused  uint32 // sheds of lines that are not suspected
	shed     uint32 // sheds of lines that had not been shed before while others were answered
}

// modelTally holds the tallies of a model by runner. It exists while there are jobs of the model.
type modelTally struct {
	runners map[*runner]*tally
	jobs    int
}

// on returns the tally of a runner.
func (m *modelTally) on(r *runner) *tally {
	t := m.runners[r]
	if t == nil {
		t = &tally{}
		m.runners[r] = t
	}
	return t
}

// shedRecord counts the sheds of a line. Few lines have one.
type shedRecord struct {
	seen []shedOn // by runner that has shed the line
	// half counts half sheds: two for a shed while most other lines were answered, one for a shed
	// while no other line was in flight.
	half    uint16
	counted bool  // a shed counted while most other lines were answered
	at      int64 // time of the last counted shed, in Unix nanoseconds
}

// shedOn is a runner that has shed a line.
type shedOn struct {
	tally *tally
	last  tally // its value at the last shed
}

// count counts a shed of the line by a runner with the tally n, which had the value started when
// the line started there. The shed counts if most other lines were answered by this runner since it
// last shed the line, or since the line first started there. It does not count while others are
// shed too, as in an outage. Many lines that are at fault don't excuse each other: those that were
// counted half as often as they may are suspected, and their sheds say nothing.
//
// The last line of a model has no others to compare with. Its shed counts half if one has counted
// before, and only after the usual pause, whatever Retry-After says. So an outage at the end of a
// batch may last some minutes.
func (s *shedRecord) count(now time.Time, n *tally, started tally, cfg RetryConfig) {
	last := s.on(n, started)
	answered := n.answered - last.answered
	refused, shed := n.refused-last.refused, n.shed-last.shed
	if !s.counted { // others can't know yet that the line is at fault
		n.shed++
	}
	switch {
	case answered > refused:
		s.half, s.counted = s.half+2, true
		s.at = now.UnixNano()
	case answered+shed > 0 || !s.counted:
	case now.UnixNano()-s.at >= int64(cfg.backoff(int(s.half))):
		s.half++
		s.at = now.UnixNano()
	}
	if !s.suspected(cfg) {
		n.refused++
	}
	*last = *n
}

// suspected reports whether the line has been shed half as often as it may be.
func (s *shedRecord) suspected(cfg RetryConfig) bool { return int(s.half) >= cfg.Sheds }

// on returns the value of a tally at its runner's last shed of the line; started if there is none.
func (s *shedRecord) on(n *tally, started tally) *tally {
	for i := range s.seen {
		if s.seen[i].tally == n {
			return &s.seen[i].last
		}
	}
	s.seen = append(s.seen, shedOn{n, started})
	return &s.seen[len(s.seen)-1].last
}

// tooMany reports whether the line has been shed as often as it may be.
func (s *shedRecord) tooMany(cfg RetryConfig) bool { return int(s.half) >= 2*cfg.Sheds }

// shed counts a shed of a line and returns its record.
func (p *Planner) shed(now time.Time, s *Start) shedRecord {
	j, at := s.job, lineAt{s.line.chunk, s.line.slot}
	record := j.sheds[at]
	record.count(now, s.tally, s.started, p.cfg.Retry)
	if j.sheds == nil {
		j.sheds = map[lineAt]shedRecord{}
	}
	j.sheds[at] = record
	return record
}

// openTally gives a new job the tallies of its model.
func (p *Planner) openTally(j *job) {
	j.tally = p.tallies[j.key.Model]
	if j.tally == nil {
		j.tally = &modelTally{runners: map[*runner]*tally{}}
		p.tallies[j.key.Model] = j.tally
	}
	j.tally.jobs++
}

// closeTally releases the tallies of a job that is gone.
func (p *Planner) closeTally(j *job) {
	if j.tally.jobs--; j.tally.jobs == 0 {
		delete(p.tallies, j.key.Model)
	}
}

// dropTallies releases the tallies of a runner that is gone.
func (p *Planner) dropTallies(r *runner) {
	for _, t := range p.tallies {
		delete(t.runners, r)
	}
}
