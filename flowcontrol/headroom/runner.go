package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// runner is the controller's state of one runner.
type runner struct {
	access       flowcontrol.Access
	own          ownLoad
	ownFirst     ownFirstTokens
	ownAnswers   ownAnswers
	iterations   iterations
	virtual      virtualAnswers
	gapVariance  float64 // of token gaps within the last reading; 0: unknown
	interactive  interactive
	kvAlone      spread // the share of the KV cache that users would hold without batch work
	staleness    staleness
	brake        brake
	kvPressure   kvPressure
	slotPressure slotPressure
	queued       queued
	feed         feed
	backlog      backlog
	unanswered   int // lines that broke since one was answered

	// yield is the share of the lines by feedback that the runner may carry after sheds. 1: all.
	yield   float64
	lastCut time.Time // when a shed last lowered yield; zero: never

	carried  spread  // lines, over the last half minute
	extra    float64 // makes the lines by feedback a whole number
	computed float64 // own.computed at the last second

	answered visits
	stay     stay
	packedAt time.Time
	visits   spread  // interactive requests while it is packed
	avoided  bool    // by the router
	packed   float64 // lines of a packed runner; 0: it is not packed

	budget promptBudget

	granted flowcontrol.RunnerAllowance
	due     time.Time // when granted changes without an observation; zero: never
	changed bool      // granted must be computed again
}

func newRunner(now time.Time, lines, prefilling int) *runner {
	return &runner{
		own:       newOwnLoad(now, lines, prefilling),
		staleness: newStaleness(now), yield: 1, changed: true, feed: feed{trust: 1},
	}
}

// cut lowers the runner's share of lines after a shed, at most once per DecreaseEvery, because
// lines that are shed together have one cause.
func (r *runner) cut(now time.Time, lines float64, cfg Tuning) {
	if !r.lastCut.IsZero() && now.Sub(r.lastCut) < cfg.DecreaseEvery {
		return
	}
	r.lastCut = now
	carried := min(1, float64(r.own.lines)/max(lines, 1))
	r.yield = max(min(r.yield, carried)*cfg.Decrease, 1/max(lines, 1))
}

// comparable reports whether nothing but the time of its iterations limits the runner's lines. A
// runner that sheds, has stale metrics, or is full of interactive requests carries few lines for
// another reason, so it does not limit the other runners.
func (r *runner) comparable(held bool) bool {
	full := r.granted.Reason == ReasonKV || r.granted.Reason == ReasonSlots
	return r.yield == 1 && !held && r.staleness.state == fresh && !full
}

// breaksAfter is the number of lines that break without an answer between them after which a runner
// counts as one that breaks lines. A single one may be at fault itself.
const breaksAfter = 2

// breaksLines reports whether lines on the runner break, though its metrics may go on. It carries
// none but trials, so it says nothing of what the others may carry.
func (r *runner) breaksLines() bool { return r.unanswered >= breaksAfter }
