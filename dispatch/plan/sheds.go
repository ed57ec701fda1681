package plan

import "time"

// neighbours counts how lines of one model ended, for judging a line that is shed again and again: is it the line, or has the pool no
// room for anybody?
type neighbours struct {
	answered uint32 // with a result, good or bad
	shed     uint32 // of lines that nothing is held against
}

// shedRecord is what is held against a line that was shed.
type shedRecord struct {
	before neighbours // as of its last shed; of its start, if it was never shed
	// half counts sheds twice: a shed while most of its neighbours were answered by two, one while it was alone by one.
	half uint16
	at   int64 // when the last one that counted was, in Unix nanoseconds
}

// restart begins the record of a line that starts and has nothing held against it.
func (s *shedRecord) restart(n *neighbours) {
	if s.half == 0 {
		s.before = *n
	}
}

// note counts a shed of the line. An outage counts for nothing: then its neighbours are shed, too. A line that is the last of its model
// has no neighbours to compare with. What was seen of them before decides then, and time must have passed, whatever the runner
// says of when to come back: an outage that catches a last line is given some minutes.
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

// neighboursOf returns the account of a model.
func (p *Planner) neighboursOf(model string) *neighbours {
	n := p.neighbours[model]
	if n == nil {
		n = &neighbours{}
		p.neighbours[model] = n
	}
	return n
}
