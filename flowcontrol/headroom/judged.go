package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

var _ flowcontrol.Judge = (*Controller)(nil)

// Judged implements flowcontrol.Judge. Late requests are charged to batch work as the budget of
// late requests has them.
func (c *Controller) Judged() flowcontrol.Judged { return c.judged }

// judgeVirtual counts the interactive answers of one length that end within iterations of a runner,
// of which shares are late because of batch lines and anyway. They stand in for answers that no
// gateway counts. As many have each of the lengths, so long ones run most of the time.
func (c *Controller) judgeVirtual(
	now time.Time, r *runner, iterations, late, innocent float64,
) {
	counted := c.outcomes.tpot.Known && !c.enginesStandIn(now)
	in := &r.interactive
	if counted || c.knownObjective() == 0 || !c.recent(now, in.seenAt) {
		return
	}
	n := in.running.mean * iterations / c.answers.mean() / virtualLengths
	c.judged.Tokens.Add(n, n*(late+innocent), n*late)
}
