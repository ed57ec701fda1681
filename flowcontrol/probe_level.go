package flowcontrol

import "time"

// level is a setting that the late requests steer: the highest at which no more than a share of
// requests is late. What it rests at moves slowly; while more are late than allowed it is eased
// below that, at once and for as long.
type level struct {
	cfg     LevelConfig
	allowed float64 // share of requests
	rest    float64
	// Requests within Memory, and those of them that were late; both fade.
	requests, late float64
	proof          float64 // requests within leapMemory; they fade, too
	counter        float64 // those of them that were late
	at             time.Time
	fixed          bool // nothing steers it
}

func newLevel(cfg LevelConfig, late float64) level {
	return level{cfg: cfg, allowed: float64(cfg.Part * late), rest: cfg.Start}
}

// spend takes note of requests that came back, and of those of them that were late. With a share of
// late ones above the allowed one the level falls, with one below it rises. part is how much of
// that is the level's doing and haste how much of a leap it may take, 0 to 1.
func (l *level) spend(now time.Time, requests, late, part, haste float64) {
	if l.fixed {
		return
	}
	if !l.at.IsZero() {
		fade := 1 - share(now.Sub(l.at), l.cfg.Memory)
		l.requests *= fade
		l.late *= fade
		fade = 1 - share(now.Sub(l.at), leapMemory)
		l.proof *= fade
		l.counter *= fade
	}
	l.at = now
	l.requests += requests
	l.late += late
	l.proof += requests
	l.counter += late
	move := max(float64(l.cfg.Gain*(float64(l.allowed*requests)-late)), -l.cfg.Fall)
	if late == 0 && l.counter+1 < float64(leapBelow*float64(l.allowed*l.proof)) {
		move *= 1 + float64((l.cfg.Leap-1)*haste)
	}
	l.rest = min(max(l.rest*(1+float64(part*move)), l.cfg.Least), l.cfg.Most)
}

const (
	// leapMemory is how far back requests prove that a level is far too low, and leapBelow below
	// which part of the late ones that are allowed they do: at the right level so few are seen once
	// in a hundred times.
	leapMemory = 5 * time.Minute
	leapBelow  = 0.35
)

// share of the recent requests that were late. One that is allowed to be late anyway proves
// nothing: as if as many had been in time as it takes for one to be allowed.
func (l *level) share() float64 { return l.late / (l.requests + 1/l.allowed) }

// fix sets the level for good.
func (l *level) fix(value float64) { l.rest, l.fixed = value, true }

// value is the level as it is now.
func (l *level) value() float64 {
	if l.fixed {
		return l.rest
	}
	beyond := max(0, l.share()/l.allowed-1)
	return max(l.rest*(1-min(float64(l.cfg.Ease*beyond), l.cfg.Eased)), l.cfg.Least)
}

// lateness turns the counters of a source into what came back since it was last seen.
type lateness struct {
	last  Attainment
	known bool
}

// since is what was counted since the last call. A counter that is absent, or that has begun anew,
// tells nothing this time.
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

// tempo is how long iterations take in the mean over a while. It divides the time by their number:
// a mean of means would count the time of long iterations twice.
type tempo struct{ iterations, time float64 }

// add takes note of iterations within a time, and of how much of it they took: all, but for what
// was not theirs.
func (t *tempo) add(memory, over time.Duration, iterations, ms float64) {
	fade := 1 - share(over, memory)
	t.iterations = float64(fade*t.iterations) + iterations
	t.time = float64(fade*t.time) + ms
}

// mean is in milliseconds; 0: unknown.
func (t *tempo) mean() float64 {
	if t.iterations <= 0 {
		return 0
	}
	return t.time / t.iterations
}

// share is the weight of what took d in a mean that looks back over memory: 1-exp(-d/memory), near
// enough and the same on every processor.
func share(d, memory time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(d) / float64(d+memory)
}
