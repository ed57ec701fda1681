package flowcontrol

import (
	"math"
	"time"
)

// Controller sets the number of batch lines that each runner of one pool may carry.
//
// One goroutine uses it. It reads no clock; now must not go back from call to call. It ignores
// observations of runners that have not joined, and of types that it does not know. So a new type
// needs no change in existing policies. It cannot fail. flowcontroltest.TestController checks the
// contract.
type Controller interface {
	// Name returns the policy's name.
	Name() string
	// Observe takes over what happened. It returns whether the allowance may differ now. The
	// observation belongs to the caller, who may use its memory for the next one: what is kept of
	// it is copied.
	Observe(now time.Time, o Observation) (changed bool)
	// Allowance returns what is granted. It is valid until an Observe that returns true, or until
	// its Until.
	Allowance(now time.Time) Allowance
}

// LongestHold limits Retry-After. A longer one is an outage or a mistake, and asking again once an
// hour costs nobody anything.
const LongestHold = time.Hour

// PauseAfterShed is the time in which a runner gets no new lines after it shed one without naming a
// time. It doubles with every further shed, up to LongestPause, until a line is answered. Without a
// pause the freed place would be filled and shed again as fast as the network allows. With a long
// one from the start, a runner that sheds one line in ten would be idle most of the time.
const (
	PauseAfterShed = 50 * time.Millisecond
	LongestPause   = time.Second
)

// NoLimit is Allowance.Pool if the pool has no limit of its own, and RunnerAllowance.Prompt if
// prompts are not limited.
const NoLimit = math.MaxInt

// Allowance is what flow control grants. A line may be started on a runner while the runner carries
// fewer than its Lines and has fewer than its Prompt tokens left to compute, and while the pool,
// all its runners together, carries fewer than Pool.
type Allowance struct {
	// Pool is the greatest number of lines in flight in the pool; NoLimit: only the runners' own
	// limits bind. The sum over Runners never exceeds it.
	Pool int
	// Runners holds every runner that has joined, sorted by ID. The controller owns it: callers
	// read it and do not use it after the next call.
	Runners []RunnerAllowance
	// Streams is the number of the lines on a runner that should be streamed, so that their tokens
	// can be observed. 0: none need be.
	Streams int
	// Reason is what limits the pool: its own limit if that binds, else the reason of most runners.
	Reason Reason
	// Until is when to ask again because time alone changes the allowance; zero: never.
	Until time.Time
}

// RunnerAllowance is one runner's part of an Allowance.
type RunnerAllowance struct {
	Runner string
	Lines  int // in flight at most; never negative
	// Prompt is the number of prompt tokens that may be waiting to be computed there when another
	// line starts; NoLimit: any number.
	Prompt int
	// Evict asks to end lines before their answer, the youngest first, until no more than Lines are
	// left, because interactive requests suffer. If it is false, a runner that carries more than
	// its Lines keeps them.
	Evict  bool
	Reason Reason
}

// Reason names the one thing that keeps an allowance from being larger. It is a metric label and is
// shown to users. Policies have further reasons of their own.
type Reason string

// Reasons that any policy may have.
const (
	ReasonNone        Reason = ""             // nothing limits
	ReasonNoRunner    Reason = "no_runner"    // the pool has none
	ReasonRunnerLimit Reason = "runner_limit" // the configured limit per runner
	ReasonPoolLimit   Reason = "pool_limit"   // the configured limit per pool
	ReasonRetryAfter  Reason = "retry_after"  // the runner asked for a pause
	ReasonShed        Reason = "shed"         // the runner shed at a higher number, or just now
	ReasonWatching    Reason = "watching"     // the pool is watched before lines start
	ReasonGrowing     Reason = "growing"      // the runner has not shown yet that it carries more
	ReasonPrompt      Reason = "prompt_limit" // enough prompt tokens wait to be computed there
)
