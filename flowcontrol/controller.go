package flowcontrol

import (
	"math"
	"time"
)

// Controller decides how many batch lines each runner of one pool may carry.
//
// One goroutine uses it. It reads no clock: now must not go back from call to call. Observations of
// runners that have not joined are ignored, and so are kinds that a controller does not know, so
// that a new kind (a reading of the pool's metrics, the gap between two streamed tokens) needs no
// change in those that exist. flowcontroltest.TestController checks the contract.
type Controller interface {
	Name() string
	// Observe feeds what happened; changed says whether the allowance may differ now.
	Observe(now time.Time, o Observation) (changed bool)
	// Allowance is valid until the next Observe that reports a change, or until its Until.
	Allowance(now time.Time) Allowance
}

// Observation is one thing that happened to a runner, or to the pool as a whole where Runner is
// empty.
type Observation struct {
	Kind   Kind
	Runner string
	// InFlight is how many batch lines the runner carries after this event.
	InFlight int
	// Prefilling is how many prompt tokens the runner was sent with batch lines and, as far as
	// anyone knows, has not computed yet. A first token tells that its line's prompt is computed,
	// and those of all lines sent there before it.
	Prefilling int
	// Latency is from start to answer. For Answered; for FirstToken, from start to that token.
	Latency time.Duration
	// RetryAfter is how long the runner asked not to be sent more; 0: it didn't say, which counts
	// as PauseAfterShed. More than LongestHold counts as that. For Shed.
	RetryAfter time.Duration
	// PromptTokens and OutputTokens are what the answer's usage says; 0: unknown. For Answered. For
	// Started and FirstToken, PromptTokens is what the line is estimated to have. For Started,
	// OutputTokens is what the line is expected to be answered with, as those of its job have been
	// and will be that are under way for long; 0: nothing is known of the job yet. Lines of a new
	// kind show there from their first tokens on, long before their answers.
	PromptTokens, OutputTokens int
	// CachedTokens of the PromptTokens were found in the runner's prefix cache; 0: none, or
	// unknown. For Answered.
	CachedTokens int
	// Gaps is how many gaps between tokens of one stream were seen since the last such event,
	// GapTime how long they took together. One gap is one iteration of the engine: streams of one
	// runner get their tokens together. For TokenGaps.
	Gaps    int
	GapTime time.Duration
	// Lines is how many lines the pool would have to carry from now on for all its deadlines to be
	// met. For Pressed.
	Lines float64
	// Reading is for Read. It is shared; nobody writes to it.
	Reading *Reading
}

// Kind is what an Observation is about.
type Kind uint8

const (
	RunnerJoined Kind = iota + 1 // may be sent lines from now on; a second time changes nothing
	RunnerLeft                   // is forgotten, with all that was learnt about it
	Started                      // a line went out to it
	Answered                     // it answered a line, whatever the answer says about the line
	Shed                         // it refused a line for load: 429 or 503
	Broken                       // a line got no answer: transport error, another 5xx
	Recalled                     // a line was ended by us; says nothing about the runner
	FirstToken                   // a streamed line brought its first token
	TokenGaps                    // streamed lines brought further tokens
	Read                         // somebody looked at its metrics, or at the pool's
	Pressed                      // deadlines of the pool's jobs ask for lines; Runner is empty
)

// LongestHold bounds Retry-After. A longer one is an outage or a mistake; asking again once an hour
// costs nobody anything.
const LongestHold = time.Hour

// PauseAfterShed is how long a runner gets no new lines after it shed one without saying for how
// long; it doubles with every further one, up to LongestPause, until a line is answered. Without it
// the freed place would be filled and shed again as fast as the network allows; with a long one
// from the start, a runner that sheds one line in ten would rest most of the time.
const (
	PauseAfterShed = 50 * time.Millisecond
	LongestPause   = time.Second
)

// NoLimit is Allowance.Pool when the pool has no limit of its own, and RunnerAllowance.Prompt when
// prompts are not limited.
const NoLimit = math.MaxInt

// Allowance is what flow control grants. A line may be started on a runner while the runner carries
// fewer than its Lines and has fewer than its Prompt tokens left to compute, and while the pool,
// all its runners together, carries fewer than Pool.
type Allowance struct {
	// Pool is how many lines may be in flight in the pool at most; NoLimit: only the runners' own
	// limits bind. The sum over Runners never exceeds it.
	Pool int
	// Runners holds every runner that has joined, sorted by ID. It belongs to the controller: read
	// it, don't keep it past the next call.
	Runners []RunnerAllowance
	// Streams is how many of the lines that a runner carries should be streamed, so that their
	// tokens can be seen as they come. 0: none need be.
	Streams int
	// Reason is what limits the pool: its own limit if that binds, else the reason of most runners.
	Reason Reason
	// Until is when to ask again because time alone changes the allowance; zero: never.
	Until time.Time
}

// RunnerAllowance is one runner's part.
type RunnerAllowance struct {
	Runner string
	Lines  int // in flight at most; never negative
	// Prompt is how many prompt tokens may be waiting to be computed there when another line
	// starts; NoLimit: any number.
	Prompt int
	// Recall asks to end lines before their answer, the youngest first, until no more than Lines
	// are left: interactive requests suffer. Otherwise a runner that carries more than its Lines
	// keeps them.
	Recall bool
	Reason Reason
}

// Reason names the one thing that keeps an allowance from being larger. It is a metric label and is
// shown to users.
type Reason string

const (
	ReasonNone        Reason = ""             // nothing limits
	ReasonNoRunner    Reason = "no_runner"    // the pool has none
	ReasonRunnerLimit Reason = "runner_limit" // the configured limit per runner
	ReasonPoolLimit   Reason = "pool_limit"   // the configured limit per pool
	ReasonRetryAfter  Reason = "retry_after"  // the runner asked to be left alone for a while
	ReasonShed        Reason = "shed"         // the runner shed at a higher number, or a moment ago
	ReasonLearning    Reason = "learning"     // the runner has not shown yet that it carries more
	ReasonPrompt      Reason = "prompt_limit" // enough prompt tokens wait to be computed there
)
