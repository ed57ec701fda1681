package plan

import "time"

// tally counts how the lines of a model ended. It shows whether a line that is shed again and again
// is the cause, or whether the pool has no free slot for any line.
type tally struct {
	answered uint32 // with a result, good or bad
	shed     uint32 // sheds of lines without a counted shed
}

// modelTally is the tally of a model. It exists while there are jobs of the model.
type modelTally struct {
	tally
	jobs int
}

// shedRecord counts the sheds of a line. Few lines have one.
type shedRecord struct {
	before tally // of the model: at the last shed, or at the start until a shed was counted
	// half counts half sheds: two for a shed while most other lines were answered, one for a shed
	// while no other line was in flight.
	half uint16
	at   int64 // time of the last counted shed, in Unix nanoseconds
}

// count counts a shed of the line. It does not count in an outage, when other lines are shed too.
// The last line of a model has no others to compare with. Its shed counts half if others were
// answered before, and only after the usual pause, whatever Retry-After says. So an outage at the
// end of a batch may last some minutes.
func (s *shedRecord) count(now time.Time, n *tally, cfg RetryConfig) {
	answered, shed := n.answered-s.before.answered, n.shed-s.before.shed
	switch {
	case answered > shed:
		s.half += 2
		s.at = now.UnixNano()
	case s.half == 0:
		n.shed++ // for other lines this shows that there is no free slot
	case answered+shed > 0:
	case now.UnixNano()-s.at >= int64(cfg.backoff(int(s.half))):
		s.half++
		s.at = now.UnixNano()
	}
	s.before = *n
}

// tooMany reports whether the line has been shed as often as it may be.
func (s *shedRecord) tooMany(cfg RetryConfig) bool { return int(s.half) >= 2*cfg.Sheds }

// shed counts a shed of a line and returns its record.
func (p *Planner) shed(now time.Time, s *Start) shedRecord {
	j, at := s.job, lineAt{s.line.chunk, s.line.slot}
	record := j.sheds[at]
	if record.half == 0 {
		record.before = s.tally
	}
	record.count(now, &j.tally.tally, p.cfg.Retry)
	if j.sheds == nil {
		j.sheds = map[lineAt]shedRecord{}
	}
	j.sheds[at] = record
	return record
}

// openTally gives a new job the tally of its model.
func (p *Planner) openTally(j *job) {
	j.tally = p.tallies[j.key.Model]
	if j.tally == nil {
		j.tally = &modelTally{}
		p.tallies[j.key.Model] = j.tally
	}
	j.tally.jobs++
}

// closeTally releases the tally of a job that is gone.
func (p *Planner) closeTally(j *job) {
	if j.tally.jobs--; j.tally.jobs == 0 {
		delete(p.tallies, j.key.Model)
	}
}
