package flowcontrol

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol/internal/faults"
)

// schedule follows a timetable: how many lines, how many prompt tokens, how long iterations may
// take, from each time of day on. With Theta it is the policy probe whose targets are given instead
// of found; without, lines are as many as the timetable says.
type schedule struct {
	cfg   ScheduleConfig
	phase int       // of Rows, that is in force
	until time.Time // when the next one is
	*probe
	grants []RunnerAllowance // in the order of members
}

// ScheduleConfig is a timetable.
type ScheduleConfig struct {
	// Begin is the instant that the rows count from. Default: the midnight UTC that began 1970, so
	// that with Every 24h they are times of day.
	Begin time.Time `yaml:"begin"`
	// Every is after how long the timetable begins again. 0: never, its last row stays. Default:
	// 24h.
	Every time.Duration `yaml:"every"`
	// Rows are the timetable, in order of time. Before the first, and without any, nothing starts.
	Rows []ScheduleRow `yaml:"rows"`
}

// ScheduleRow is what holds from a time on.
type ScheduleRow struct {
	// At is when, counted from Begin.
	At time.Duration `yaml:"at"`
	// Lines is how many a runner carries at most; 0: none.
	Lines int `yaml:"lines"`
	// Prompt is how many prompt tokens of ours may wait on a runner when another line starts. 0:
	// any number.
	Prompt int `yaml:"prompt"`
	// Theta is the share of the SLO's TPOT that iterations shall take, to which the number of lines
	// is adapted as the policy probe does, Lines at most. 0: Lines is the number, however long
	// iterations take.
	Theta float64 `yaml:"theta"`
}

func DefaultSchedule() ScheduleConfig {
	return ScheduleConfig{Begin: time.Unix(0, 0).UTC(), Every: 24 * time.Hour}
}

// Validate reports every fault with the path of its field.
func (c ScheduleConfig) Validate() error {
	var all faults.List
	if year := c.Begin.Year(); year < 1970 || year > 2200 {
		all.Add("begin", "is %v, must be between 1970 and 2200", c.Begin)
	}
	if c.Every < 0 {
		all.Add("every", "is %v, must not be negative", c.Every)
	}
	for i, row := range c.Rows {
		switch {
		case row.At < 0 || i > 0 && row.At <= c.Rows[i-1].At:
			all.Add("rows", "row %d is at %v, must come after the one before", i+1, row.At)
		case c.Every > 0 && row.At >= c.Every:
			all.Add("rows", "row %d is at %v, must be less than every, %v", i+1, row.At,
				c.Every)
		case row.Lines < 0 || row.Prompt < 0:
			all.Add("rows", "row %d has lines %d and prompt %d, must not be negative", i+1,
				row.Lines, row.Prompt)
		case !(row.Theta >= 0 && row.Theta <= 2):
			all.Add("rows", "row %d has theta %v, must be from 0 to 2", i+1, row.Theta)
		}
	}
	return all.Err()
}

func newSchedule(cfg Config) *schedule {
	return &schedule{cfg: OwnConfig[ScheduleConfig](cfg, "schedule"), phase: -1, probe: newProbe(cfg)}
}

func (*schedule) Name() string { return "schedule" }

func (s *schedule) Observe(now time.Time, o Observation) (changed bool) {
	moved := s.follow(now)
	changed = s.probe.Observe(now, o)
	s.set()
	return changed || moved
}

func (s *schedule) Allowance(now time.Time) Allowance {
	s.follow(now)
	row := s.row()
	s.grants = s.grants[:0]
	if row.Theta > 0 {
		s.grants = append(s.grants, s.probe.Allowance(now).Runners...)
	}
	for i, m := range s.Members {
		if row.Theta == 0 {
			s.grants = append(s.grants, RunnerAllowance{Runner: m.ID, Lines: row.Lines,
				Prompt: s.prompts(), Reason: ReasonRunnerLimit})
		} else if g := &s.grants[i]; g.Lines > row.Lines {
			g.Lines, g.Reason = row.Lines, ReasonRunnerLimit
		}
	}
	a := s.instead(now, s.grants)
	if !s.until.IsZero() && len(s.Members) > 0 && s.until.Before(a.Until) {
		a.Until = s.until
	}
	return a
}

// prompts is how many prompt tokens may wait on a runner by the row that holds now.
func (s *schedule) prompts() int {
	if row := s.row(); row.Prompt > 0 {
		return row.Prompt
	}
	return NoLimit
}

// follow goes to the row of the time.
func (s *schedule) follow(now time.Time) (moved bool) {
	if now.Before(s.until) || len(s.cfg.Rows) == 0 || s.phase >= 0 && s.until.IsZero() {
		return false
	}
	since := now.Sub(s.cfg.Begin)
	begin := s.cfg.Begin
	if s.cfg.Every > 0 && since >= 0 {
		begin = now.Add(-(since % s.cfg.Every))
		since %= s.cfg.Every
	}
	rows, before := s.cfg.Rows, s.phase
	s.phase = -1
	for s.phase+1 < len(rows) && rows[s.phase+1].At <= since {
		s.phase++
	}
	switch {
	case s.phase+1 < len(rows):
		s.until = begin.Add(rows[s.phase+1].At)
	case s.cfg.Every > 0:
		s.until = begin.Add(s.cfg.Every)
	default:
		s.until = time.Time{}
	}
	if s.phase == before {
		return false
	}
	s.set()
	for _, m := range s.Members {
		m.State.stale = true
	}
	return true
}

// row is what holds now.
func (s *schedule) row() ScheduleRow {
	if s.phase < 0 {
		return ScheduleRow{}
	}
	return s.cfg.Rows[s.phase]
}

// set puts the row's targets where probe would put those it found.
func (s *schedule) set() {
	row := s.row()
	if row.Theta > 0 {
		s.theta.fix(row.Theta)
	} else {
		s.theta.fix(s.probe.cfg.Theta.Start)
	}
	s.prompt.fix(float64(s.prompts()))
}
