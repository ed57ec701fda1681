// Package schedule holds the flow-control policy schedule, which follows a timetable. Its rows set
// the number of lines and prompt tokens, and the longest time of iterations, from a time of day on.
//
// A row with a target share is the policy headroom with a target that is given instead of found;
// a row without one grants as many lines as it says.
package schedule

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

// Name is the policy's name in configurations.
const Name = "schedule"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		Needs:   flowcontrol.Needs{Readings: true, Streams: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			cfg.SLO = cfg.SLO.WithUsual()
			return &controller{cfg: flowcontrol.OwnConfig[Config](cfg, Name), current: -1,
				Controller: headroom.New(cfg)}, nil
		},
	})
}

type controller struct {
	cfg     Config
	current int       // of Rows; -1: none yet
	until   time.Time // when the next row holds; zero: never
	*headroom.Controller
	grants []flowcontrol.RunnerAllowance // in the order of runners
}

func (*controller) Name() string { return Name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	moved := c.follow(now)
	changed = c.Controller.Observe(now, o)
	c.setTargets()
	return changed || moved
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	c.follow(now)
	row := c.row()
	c.grants = c.grants[:0]
	if row.TargetShare > 0 {
		c.grants = append(c.grants, c.Controller.Allowance(now).Runners...)
	}
	ids := c.IDs()
	for i, id := range ids {
		if row.TargetShare == 0 {
			c.grants = append(c.grants, flowcontrol.RunnerAllowance{Runner: id, Lines: row.Lines,
				Prompt: c.promptTokens(), Reason: flowcontrol.ReasonRunnerLimit})
		}
		lines := row.Lines
		if row.Runners > 0 && i >= row.Runners {
			lines = 0
		}
		if g := &c.grants[i]; g.Lines > lines {
			g.Lines, g.Reason = lines, flowcontrol.ReasonRunnerLimit
		}
	}
	a := c.Replace(now, c.grants)
	if !c.until.IsZero() && len(ids) > 0 && c.until.Before(a.Until) {
		a.Until = c.until
	}
	return a
}

// promptTokens returns the number of prompt tokens that may wait on a runner by the current row.
func (c *controller) promptTokens() int {
	if row := c.row(); row.PromptTokens > 0 {
		return row.PromptTokens
	}
	return flowcontrol.NoLimit
}

// follow moves to the row that holds now.
func (c *controller) follow(now time.Time) (moved bool) {
	if now.Before(c.until) || len(c.cfg.Rows) == 0 || c.current >= 0 && c.until.IsZero() {
		return false
	}
	since, begin := now.Sub(c.cfg.Begin), c.cfg.Begin
	if c.cfg.Every > 0 && since >= 0 {
		begin = now.Add(-(since % c.cfg.Every))
		since %= c.cfg.Every
	}
	rows, before := c.cfg.Rows, c.current
	c.current = -1
	for c.current+1 < len(rows) && rows[c.current+1].At <= since {
		c.current++
	}
	switch {
	case c.current+1 < len(rows):
		c.until = begin.Add(rows[c.current+1].At)
	case c.cfg.Every > 0:
		c.until = begin.Add(c.cfg.Every)
	default:
		c.until = time.Time{}
	}
	if c.current == before {
		return false
	}
	c.setTargets()
	c.Invalidate()
	return true
}

// row returns the current row; the zero value before the first one.
func (c *controller) row() Row {
	if c.current < 0 {
		return Row{}
	}
	return c.cfg.Rows[c.current]
}

// setTargets gives the current row's targets to the policy headroom.
func (c *controller) setTargets() {
	share := c.row().TargetShare
	if share == 0 {
		share = c.StartShare()
	}
	c.FixTargets(share, float64(c.promptTokens()))
}
