package plan

import "time"

// Actions is what to do about an event. The slices are valid until the next Step.
type Actions struct {
	// Start lists the requests to send now, in order.
	Start []Start
	// Claim lists the jobs whose next chunk should be claimed and fed back as Loaded.
	Claim []Claim
	// Recall lists lines under way that are to be ended now; each comes back as Finished, Recalled
	// unless its answer was faster.
	Recall []Start
	// Verdict is the fate of the line of a Finished event.
	Verdict Verdict
	// Wake: send a Tick no later than this; zero: only when something happens.
	Wake time.Time
}

// Start is one request to send.
type Start struct {
	Key     JobKey
	Chunk   int
	Slot    int // of the line within its chunk, as given in Loaded
	Runner  string
	Attempt int // from 1; sheds don't count
	// Stream asks for the answer token by token, so that FirstToken and TokenGaps can be told. What
	// is written down is the same.
	Stream bool

	number uint64 // of the start; grows
	line   line
	job    *job
	runner *runner
	life   uint32     // of the runner
	trial  uint32     // of the runner's breaker; 0: none
	near   neighbours // as it started
}

// Claim asks for the next chunk of a job.
type Claim struct{ Key JobKey }

// Verdict is what becomes of a line after an answer.
type Verdict uint8

const (
	// Record: this is the line's result, good or bad; write it down.
	Record Verdict = iota
	// Again: the planner will start the line again; forget this answer.
	Again
	// Return: the line's batch is gone; put the line back undone, unless there is an answer worth
	// keeping.
	Return
)

// Reason names why no more is started: the one thing that limits.
type Reason string

const (
	Flowing        Reason = ""                 // lines are starting
	NothingReady   Reason = "nothing_ready"    // no line is waiting
	AtLimit        Reason = "at_limit"         // the allowance is used up
	UpstreamDown   Reason = "upstream_down"    // no runner can be reached; tried again by itself
	NoRunner       Reason = "no_runner"        // nobody serves the model
	WaitingToRetry Reason = "waiting_to_retry" // all that is left waits for its next attempt
	Paused         Reason = "paused"
	BatchLimit     Reason = "max_concurrency" // the batch's own limit
	// lines are being read, or another dispatcher holds them
	Loading   Reason = "loading"
	Draining  Reason = "draining"
	DiskFull  Reason = "disk_full"
	StoreDown Reason = "store_unreachable"
)
