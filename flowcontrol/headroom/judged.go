package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

var _ flowcontrol.Judge = (*Controller)(nil)

// Judged implements flowcontrol.Judge. Late requests are charged to batch work as the budget of
// late requests has them.
func (c *Controller) Judged() flowcontrol.Judged { return c.judged }

// judgeVirtual counts virtual answers of each of the interactive requests on a runner, of which
// shares are late because of batch lines and anyway. They stand in for answers that no gateway
// counts.
func (c *Controller) judgeVirtual(
	now time.Time, r *runner, answers, late, innocent float64,
) {
	counted := c.outcomes.tpot.Known && !c.enginesStandIn(now)
	in := &r.interactive
	if counted || c.knownObjective() == 0 || !c.recent(now, in.seenAt) {
		return
	}
	n := answers * in.running.mean
	c.judged.Tokens.Add(n, n*(late+innocent), n*late)
}
