package flowcontrol

import "time"

// gradient is Netflix's Gradient2 (concurrency-limits): a runner's limit follows the ratio of its
// long-term mean latency to that of the last window, which falls below one when requests begin to
// queue. It takes every answer's latency as it is, so lines of different lengths look to it like
// load that comes and goes.
type gradient struct {
	cfg GradientConfig
	roster
	slopes map[string]*slope
}

// GradientConfig is that of Gradient2, with Netflix's names and defaults.
type GradientConfig struct {
	// Initial is a runner's limit at first, at least Min and at most Max. Default: 20.
	Initial int `yaml:"initial"`
	// Min is the least it falls to, at least 1. Default: 20.
	Min int `yaml:"min"`
	// Max is the most it grows to. Default: 200.
	Max int `yaml:"max"`
	// PerPool is how many lines the pool carries at most, shared out between its runners; 0: no
	// limit. Default: 0.
	PerPool int `yaml:"per_pool"`
	// Tolerance is by how much latency may exceed its long-term mean before the limit falls, at
	// least 1. Default: 1.5.
	Tolerance float64 `yaml:"tolerance"`
	// Queue is by how many the limit grows, before smoothing, while latency stays. Default: 4.
	Queue int `yaml:"queue"`
	// Smoothing is the share of a new limit that is taken over at once, above 0 and at most 1.
	// Default: 0.2.
	Smoothing float64 `yaml:"smoothing"`
	// LongWindow is over how many windows the long-term mean looks back, at least 1. Default: 600.
	LongWindow int `yaml:"long_window"`
	// Window is the shortest time between two updates of a limit. Default: 1s.
	Window time.Duration `yaml:"window"`
	// Samples is how many answers an update needs at least, at least 1. Default: 10.
	Samples int `yaml:"samples"`
}

func defaultGradient() GradientConfig {
	return GradientConfig{
		Initial: 20, Min: 20, Max: 200, Tolerance: 1.5, Queue: 4, Smoothing: 0.2, LongWindow: 600,
		Window: time.Second, Samples: 10,
	}
}

func (c GradientConfig) validate(all *faults) {
	all.atLeast("gradient.min", c.Min, 1)
	all.atLeast("gradient.initial", c.Initial, c.Min)
	if c.Max < c.Initial {
		all.add("gradient.max", "is %d, must be at least gradient.initial (%d)", c.Max, c.Initial)
	}
	all.atLeast("gradient.per_pool", c.PerPool, 0)
	if !(c.Tolerance >= 1 && c.Tolerance <= 100) {
		all.add("gradient.tolerance", "is %v, must be from 1 to 100", c.Tolerance)
	}
	all.atLeast("gradient.queue", c.Queue, 0)
	if !(c.Smoothing > 0 && c.Smoothing <= 1) {
		all.add("gradient.smoothing", "is %v, must be above 0 and at most 1", c.Smoothing)
	}
	all.atLeast("gradient.long_window", c.LongWindow, 1)
	if c.Window <= 0 {
		all.add("gradient.window", "is %v, must be positive", c.Window)
	}
	all.atLeast("gradient.samples", c.Samples, 1)
}

// slope is what is known of a runner's latency.
type slope struct {
	limit   float64
	long    longMean
	due     time.Time     // when the window under way may end
	sum     time.Duration // latencies within it
	answers int
	carried int // most lines within it
}

// longMean is exponential once it has seen warmUp samples; until then it is their plain mean.
type longMean struct {
	mean float64
	seen int
}

const warmUp = 10

func (l *longMean) add(x float64, window int) {
	if l.seen < warmUp {
		l.seen++
		l.mean += (x - l.mean) / float64(l.seen)
		return
	}
	l.mean += (x - l.mean) * 2 / float64(window+1)
}

func newGradient(cfg GradientConfig) *gradient {
	return &gradient{cfg: cfg, roster: roster{perPool: cfg.PerPool}, slopes: map[string]*slope{}}
}

func (*gradient) Name() string { return "gradient" }

func (g *gradient) Observe(now time.Time, o Observation) (changed bool) {
	switch o.Kind {
	case RunnerJoined:
		changed = g.join(o.Runner, g.cfg.Initial)
		if changed {
			g.slopes[o.Runner] = &slope{limit: float64(g.cfg.Initial), due: now.Add(g.cfg.Window)}
		}
		return changed
	case RunnerLeft:
		delete(g.slopes, o.Runner)
		return g.leave(o.Runner)
	}
	m := g.find(o.Runner)
	if m == nil {
		return false
	}
	switch o.Kind {
	case Answered:
		m.sheds = 0
		before := m.limit
		m.limit = g.sample(now, g.slopes[o.Runner], o)
		return m.limit != before
	case Shed: // Gradient2 takes no notice of refusals; Retry-After is honoured all the same
		return m.hold(now, o.RetryAfter)
	}
	return false
}

// sample takes in an answer and returns the limit, which changes at the end of a window.
func (g *gradient) sample(now time.Time, s *slope, o Observation) int {
	s.sum += o.Latency
	s.answers++
	s.carried = max(s.carried, o.InFlight+1)
	if now.Before(s.due) || s.answers < g.cfg.Samples {
		return int(s.limit)
	}
	short, carried := s.sum.Seconds()/float64(s.answers), float64(s.carried)
	s.due, s.sum, s.answers, s.carried = now.Add(g.cfg.Window), 0, 0, 0
	if short <= 0 {
		return int(s.limit)
	}
	s.long.add(short, g.cfg.LongWindow)
	// after a long time of overload the mean is brought down faster than it would fall by itself
	if s.long.mean > 2*short {
		s.long.mean *= 0.9
	}
	if carried >= s.limit/2 { // a limit that is not in use proves nothing
		ratio := max(0.5, min(1, g.cfg.Tolerance*s.long.mean/short))
		next := float64(s.limit*ratio) + float64(g.cfg.Queue)
		s.limit += float64((next - s.limit) * g.cfg.Smoothing)
		s.limit = max(float64(g.cfg.Min), min(s.limit, float64(g.cfg.Max)))
	}
	return int(s.limit)
}

func (g *gradient) Allowance(now time.Time) Allowance {
	return g.allowance(now, func(m *member) Reason {
		if m.limit >= g.cfg.Max {
			return ReasonRunnerLimit
		}
		return ReasonLearning
	})
}
