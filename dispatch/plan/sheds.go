package plan

import "time"

// neighbours counts how lines of one model ended, for judging a line that is shed again and again:
// is it the line, or has the pool no room for anybody?
type neighbours struct {
	answered uint32 // with a result, good or bad
	shed     uint32 // of lines that nothing is held against
}

// account is the neighbours of one model, for as long as there are jobs of it.
type account struct {
	neighbours
	jobs int
}

// shedRecord is what is held against a line that was shed. Few lines have one.
type shedRecord struct {
	before neighbours // as of its last shed; of its start, while nothing is held against it
	// half counts sheds twice: a shed while most of its neighbours were answered by two, one while
	// it was alone by one.
	half uint16
	at   int64 // when the last one that counted was, in Unix nanoseconds
}

// note counts a shed of the line. An outage counts for nothing: then its neighbours are shed, too.
// A line that is the last of its model has no neighbours to compare with. What was seen of them
// before decides then, and time must have passed, whatever the runner says of when to come back: an
// outage that catches a last line is given some minutes.
func (s *shedRecord) note(now time.Time, n *neighbours, cfg RetryConfig) {
	answered, shed := n.answered-s.before.answered, n.shed-s.before.shed
	switch {
	case answered > shed:
		s.half += 2
		s.at = now.UnixNano()
	case s.half == 0:
		n.shed++ // nothing is held against this line: for others it is a sign that there is no room
	case answered+shed > 0:
	case now.UnixNano()-s.at >= int64(cfg.backoff(int(s.half))):
		s.half++
		s.at = now.UnixNano()
	}
	s.before = *n
}

// tooMany reports whether the line has been shed as often as it may be.
func (s *shedRecord) tooMany(cfg RetryConfig) bool { return int(s.half) >= 2*cfg.Sheds }

// shed notes that a line was shed, and returns what is held against it now.
func (p *Planner) shed(now time.Time, s *Start) shedRecord {
	j, at := s.job, lineAt{s.line.chunk, s.line.slot}
	record := j.sheds[at]
	if record.half == 0 {
		record.before = s.near
	}
	record.note(now, &j.near.neighbours, p.cfg.Retry)
	if j.sheds == nil {
		j.sheds = map[lineAt]shedRecord{}
	}
	j.sheds[at] = record
	return record
}

// openAccount gives a new job the account of its model.
func (p *Planner) openAccount(j *job) {
	j.near = p.accounts[j.key.Model]
	if j.near == nil {
		j.near = &account{}
		p.accounts[j.key.Model] = j.near
	}
	j.near.jobs++
}

// closeAccount lets go of it.
func (p *Planner) closeAccount(j *job) {
	if j.near.jobs--; j.near.jobs == 0 {
		delete(p.accounts, j.key.Model)
	}
}
