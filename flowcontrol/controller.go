package flowcontrol

import (
	"math"
	"time"
)

// Controller decides how many batch lines each runner of one pool may carry.
//
// One goroutine uses it. It reads no clock; now must not go back from call to call. It ignores
// observations of runners that have not joined and of kinds that it does not know, so that a new
// kind needs no change in existing policies. It cannot fail. flowcontroltest.TestController checks
// the contract.
type Controller interface {
	// Name returns the policy's name.
	Name() string
	// Observe takes over what happened. It returns whether the allowance may differ now.
	Observe(now time.Time, o Observation) (changed bool)
	// Allowance returns what is granted. It is valid until an Observe that returns true, or until
	// its Until.
	Allowance(now time.Time) Allowance
}

// Observation is one thing that happened to a runner, or to the pool if Runner is empty.
type Observation struct {
	Kind   Kind
	Runner string
	// InFlight is how many batch lines the runner carries after this event.
	InFlight int
	// Prefilling is how many prompt tokens of batch lines the runner was sent and, as far as known,
	// must compute and has not computed yet. Tokens that are expected in its prefix cache do not
	// count. A first token shows that its line's prompt is computed, and those of all lines sent
	// there before it. Without streams and metrics, prompts cease to count after some seconds.
	Prefilling int
	// Latency is the time from start to answer. For Answered; for FirstToken, from start to that
	// token, 0 if only metrics showed its prompt computed; for Evicted, from start to its end.
	Latency time.Duration
	// RetryAfter is how long the runner asked not to be sent more; 0: it named no time, which
	// counts as PauseAfterShed. More than LongestHold counts as that. For Shed.
	RetryAfter time.Duration
	// PromptTokens and OutputTokens come from the answer's usage; 0: unknown. For Answered. For
	// Started and FirstToken, PromptTokens is an estimate for the line. For Started, OutputTokens
	// is the output predicted for the line from others of its job, those that have been under way
	// for long included; 0: nothing is known of the job yet. So lines of a new kind show there from
	// their first tokens on, long before their answers.
	PromptTokens, OutputTokens int
	// LongOutput is how long the answer may be, cautiously, while few lines of the job have been
	// answered: those that end first are the short ones. Later it is OutputTokens. For Started.
	LongOutput int
	// Streamed is whether the line's first token will be seen. For Started.
	Streamed bool
	// CachedTokens of the PromptTokens were found in the runner's prefix cache; 0: none, or
	// unknown. For Answered, and as an estimate for Started and FirstToken.
	CachedTokens int
	// Gaps is how many gaps between tokens of one stream were seen since the last such event, and
	// GapTime how long they took together. One gap is one iteration of the engine: streams of one
	// runner get their tokens together. For TokenGaps.
	Gaps    int
	GapTime time.Duration
	// Lines is how many lines the pool would have to carry from now on to meet all its deadlines.
	// For DeadlineDemand.
	Lines float64
	// Reading is for Read. It is shared: nobody writes to it.
	Reading *Reading
	// Access says which engine gets the runner's lines. For RunnerJoined.
	Access Access
}

// Access says which engine gets the lines of a runner.
type Access uint8

// The ways to an engine.
const (
	// Direct: the runner is an engine, and gets its lines.
	Direct Access = iota
	// Routed: the runner is one of the engines behind a gateway. It stands for its part of the
	// gateway's lines: the gateway decides which engine gets a line, so none can be kept from a
	// certain one, and an evicted one may have run on another. Readings are those of the engine.
	Routed
	// Opaque: the runner is a gateway with any number of engines, which nothing shows.
	Opaque
)

// Kind says what an Observation is about.
type Kind uint8

// The kinds. Runner is empty for DeadlineDemand, and for a Read of the pool.
const (
	RunnerJoined   Kind = iota + 1 // may be sent lines from now on; a second time changes nothing
	RunnerLeft                     // the controller forgets it, with all that it learned about it
	Started                        // a line was sent to it
	Answered                       // it answered a line, whatever the answer says about the line
	Shed                           // it refused a line because of load: 429 or 503
	Broken                         // a line got no answer: transport error, another 5xx
	Evicted                        // we ended a line; says nothing about the runner
	FirstToken                     // a line brought its first token, or its prompt was computed
	TokenGaps                      // streamed lines brought further tokens
	Read                           // a reading of its metrics, or of the pool's, has arrived
	DeadlineDemand                 // deadlines of the pool's jobs require lines
)

// LongestHold limits Retry-After. A longer one is an outage or a mistake, and asking again once an
// hour costs nobody anything.
const LongestHold = time.Hour

// PauseAfterShed is how long a runner gets no new lines after it shed one without naming a time. It
// doubles with every further shed, up to LongestPause, until a line is answered. Without a pause
// the freed place would be filled and shed again as fast as the network allows; with a long one
// from the start, a runner that sheds one line in ten would be idle most of the time.
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
	// Pool is how many lines may be in flight in the pool at most; NoLimit: only the runners' own
	// limits bind. The sum over Runners never exceeds it.
	Pool int
	// Runners holds every runner that has joined, sorted by ID. The controller owns it: callers
	// read it and do not use it after the next call.
	Runners []RunnerAllowance
	// Streams is how many of the lines that a runner carries should be streamed, so that their
	// tokens can be observed. 0: none need be.
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
	// Prompt is how many prompt tokens may be waiting to be computed there when another line
	// starts; NoLimit: any number.
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
	ReasonLearning    Reason = "learning"     // the runner has not shown yet that it carries more
	ReasonPrompt      Reason = "prompt_limit" // enough prompt tokens wait to be computed there
)
