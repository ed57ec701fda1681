package headroom

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// FixTargets sets the share of the TPOT objective for iterations, and the number of prompt tokens
// of batch lines that may wait on a runner. From then on late requests move neither. It is for
// policies that take their targets from elsewhere.
func (c *Controller) FixTargets(share, promptTokens float64) {
	c.target.fix(share)
	c.promptTokens.fix(promptTokens)
}

// StartShare returns the share of the TPOT objective that iterations may take at first.
func (c *Controller) StartShare() float64 { return c.tuning.TargetShare.Start }

// Invalidate makes the next allowance compute all grants again, after FixTargets.
func (c *Controller) Invalidate() { c.invalidate() }

// Runner is what is known of a runner, for policies that compute their own grants.
type Runner struct {
	ID string
	// Lines are under way, Prefilling of their prompt tokens wait to be computed.
	Lines, Prefilling int
	// Start is the number of lines that a runner carries before anything is known of it.
	Start int
	// Safe is the greatest number of lines, whatever asks for more. SafeReason limits it.
	Safe       int
	SafeReason flowcontrol.Reason
	// Load is the interactive load. Known says that it comes from metrics that are not stale.
	Load  costmodel.Load
	Known bool
}

// Runners returns what is known of the pool's runners, sorted by ID.
func (c *Controller) Runners(now time.Time) []Runner {
	mix := c.LineMix()
	all := make([]Runner, 0, len(c.roster.Members))
	for _, m := range c.roster.Members {
		r := m.State
		in := &r.interactive
		of := Runner{ID: m.ID, Lines: r.own.lines, Prefilling: r.own.prefilling,
			Start: c.cfg.Start, Load: in.load(),
			Known: !in.seenAt.IsZero() && now.Sub(in.seenAt) < c.tuning.Staleness.StaleAfter}
		of.Safe, of.SafeReason = c.safeLines(now, r, mix)
		all = append(all, of)
	}
	return all
}

// IDs returns the pool's runners, sorted.
func (c *Controller) IDs() []string {
	ids := make([]string, len(c.roster.Members))
	for i, m := range c.roster.Members {
		ids[i] = m.ID
	}
	return ids
}

// Replace returns the allowance with other grants, in the order of Runners. Runners that are held
// keep their own.
func (c *Controller) Replace(now time.Time, grants []flowcontrol.RunnerAllowance,
) flowcontrol.Allowance {
	a := c.Allowance(now)
	for i, m := range c.roster.Members {
		if !m.Held(now) {
			a.Runners[i] = grants[i]
		}
	}
	pooled := flowcontrol.Pooled(a.Runners, c.roster.PerPool)
	pooled.Streams, pooled.Until = a.Streams, a.Until
	return pooled
}
