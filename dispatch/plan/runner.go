package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// runner is one model server: its lines in flight, its allowance, and whether it answers. It exists
// while it is part of the deployment, and afterwards until its last line has ended. If it returns
// before, these lines still count.
type runner struct {
	id       string
	engine   string // as in RunnerUp
	models   []string
	access   flowcontrol.Access
	gateway  string // as in RunnerUp
	pool     *pool  // nil: gone
	life     uint32 // number of times that the runner was removed
	inFlight int    // lines, those of earlier lives included
	lines    inFlightLines
	granted  flowcontrol.RunnerAllowance
	breaker  breaker
	answers  lastAnswers
	failed   RunnerFailure
	// stop is why no line may start until stopUntil, as the runner says. Flowing: none of that.
	stop      Reason
	stopUntil time.Time
	draining  bool // by RunnerDrain
	since     time.Time
	served    Served   // without lines in flight
	harvested *float64 // that of its pool, or of the last one
	// heldUntil is the end of the longest pause that the runner has asked for
	heldUntil time.Time
	// pausedUntil is the end of a pause that its gateway has asked for; zero: of none
	pausedUntil time.Time

	// Interactive requests that pass through:
	requests   int
	prefilling int // tokens of their prompts without a first token yet
	room       requestRoom
	requested  requested
	carried    float64 // expected work of those in flight and of lines
}

// unload takes the work of a line or request that has ended from what the runner carries.
func (r *runner) unload(work float64) {
	if r.carried = max(0, r.carried-work); !r.busy() {
		r.carried = 0
	}
}

// busy reports whether lines or requests are in flight on the runner.
func (r *runner) busy() bool { return r.inFlight > 0 || r.requests > 0 }

// free returns the number of further lines that may start on the runner now.
func (r *runner) free(now time.Time) int {
	if r.stop != Flowing || r.draining || !r.pausedUntil.IsZero() {
		return 0
	}
	return min(r.lines.free(r.granted, r.carries()), r.breaker.admits(now))
}

// load returns what the runner carries now.
func (r *runner) load() flowcontrol.Load {
	return flowcontrol.Load{Runner: r.id, InFlight: r.carries(), Prefilling: r.lines.prefilling}
}

// joined returns the observation that the runner is part of a pool.
func (r *runner) joined() *flowcontrol.RunnerJoined {
	return &flowcontrol.RunnerJoined{Load: r.load(), Access: r.access}
}

// hold notes that the runner asked for a pause.
func (r *runner) hold(now time.Time, retryAfter time.Duration) {
	if until := now.Add(min(retryAfter, flowcontrol.LongestHold)); until.After(r.heldUntil) {
		r.heldUntil = until
	}
}
