package flowcontrol

import "time"

// level is a setting that the late requests steer: the highest at which no more than a share of requests is late.
type level struct {
	cfg     LevelConfig
	allowed float64 // share of requests
	value   float64
}

func newLevel(cfg LevelConfig, late float64) level {
	return level{cfg: cfg, allowed: float64(cfg.Part * late), value: cfg.Start}
}

// spend takes note of requests that came back, and of those of them that were late. With a share of late ones above the allowed one
// the level falls, with one below it rises.
func (l *level) spend(requests, late float64) {
	move := float64(l.cfg.Gain * (float64(l.allowed*requests) - late))
	l.value = min(max(l.value*(1+max(move, -l.cfg.Fall)), l.cfg.Least), l.cfg.Most)
}

// lateness turns the counters of a source into what came back since it was last seen.
type lateness struct {
	last  Attainment
	known bool
}

// since is what was counted since the last call. A counter that is absent, or that has begun anew, tells nothing this time.
func (l *lateness) since(a Attainment) (requests, late float64, ok bool) {
	if !(a.Requests >= 0) || !(a.Late >= 0) {
		return 0, 0, false
	}
	before := l.last
	grown := l.known && a.Requests >= before.Requests && a.Late >= before.Late
	l.last, l.known = a, true
	if !grown {
		return 0, 0, false
	}
	return a.Requests - before.Requests, a.Late - before.Late, true
}

// peak is the greatest value of a window of time, in ten parts of it.
type peak struct {
	window time.Duration
	parts  [10]struct {
		from time.Time
		most float64
	}
	next int
}

func (p *peak) add(now time.Time, value float64) {
	part := &p.parts[p.next]
	if !part.from.IsZero() && now.Sub(part.from) < p.window/time.Duration(len(p.parts)) {
		part.most = max(part.most, value)
		return
	}
	p.next = (p.next + 1) % len(p.parts)
	p.parts[p.next].from, p.parts[p.next].most = now, value
}

func (p *peak) most(now time.Time) (most float64) {
	for _, part := range p.parts {
		if !part.from.IsZero() && now.Sub(part.from) <= p.window {
			most = max(most, part.most)
		}
	}
	return most
}

// spread is a mean and a variance that forget with time.
type spread struct {
	mean, variance float64
	at             time.Time
}

func (s *spread) add(now time.Time, memory time.Duration, value float64) {
	weight := 1.0
	if !s.at.IsZero() {
		weight = share(now.Sub(s.at), memory)
	}
	s.at = now
	off := value - s.mean
	s.mean += float64(weight * off)
	s.variance = (1 - weight) * (s.variance + float64(weight*float64(off*off)))
}

// share is the weight of what took d in a mean that looks back over memory: 1-exp(-d/memory), near enough and the same on every
// processor.
func share(d, memory time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(d) / float64(d+memory)
}
