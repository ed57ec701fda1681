package flowcontrol

import "time"

// Observation is one thing that happened to a runner or to the pool: a pointer to one of the types
// below.
type Observation interface {
	// About returns the runner that it happened to; empty: the pool.
	About() string
	isObservation()
}

// Load is what a runner carries of batch work after an observation.
type Load struct {
	Runner string
	// InFlight counts the batch lines on the runner.
	InFlight int
	// Prefilling counts the prompt tokens of batch lines that the runner was sent and, as far as
	// known, must compute and has not computed yet. Tokens that are expected in its prefix cache do
	// not count. A first token shows that its line's prompt is computed, and those of all lines
	// sent there before it. Without streams and metrics, prompts cease to count after some seconds.
	Prefilling int
}

// About returns the runner.
func (l *Load) About() string { return l.Runner }

// Carried returns the load. Policies that follow it need not know the type of an observation.
func (l *Load) Carried() Load { return *l }

// RunnerJoined reports that a runner may be sent lines from now on. It may carry lines already. A
// second one changes nothing.
type RunnerJoined struct {
	Load
	// Access says which engine gets the runner's lines.
	Access Access
}

// RunnerLeft reports that a runner is gone: the controller forgets it, with all that it learned
// about it.
type RunnerLeft struct{ Runner string }

// Started reports that a line was sent to a runner. All numbers of tokens are estimates.
type Started struct {
	Load
	// PromptTokens of the line.
	PromptTokens int
	// CachedTokens of the PromptTokens are expected in the runner's prefix cache; 0: none.
	CachedTokens int
	// OutputTokens is the output predicted for the line from others of its job, those that have
	// been under way for long included; 0: nothing is known of the job yet. So lines of a new kind
	// show there from their first tokens on, long before their answers.
	OutputTokens int
	// LongOutput is a cautious number of tokens of the answer while few lines of the job have been
	// answered. The lines that end first are the short ones. Later it is OutputTokens.
	LongOutput int
	// Streamed says that the line's first token will be seen.
	Streamed bool
}

// Answered reports that a runner answered a line, whatever the answer says about the line.
type Answered struct {
	Load
	// Latency is the time from the start to the answer.
	Latency time.Duration
	// PromptTokens and OutputTokens come from the answer's usage; 0: unknown.
	PromptTokens, OutputTokens int
	// CachedTokens of the PromptTokens were found in the runner's prefix cache; 0: none, or
	// unknown.
	CachedTokens int
	// Estimated is the number of prompt tokens of its Started, in which prompts are charged; 0:
	// unknown.
	Estimated int
}

// Shed reports that a runner refused a line because of load, with status 429 or 503.
type Shed struct {
	Load
	// RetryAfter is the time for which the runner asked not to be sent more; 0: it named no time,
	// which counts as PauseAfterShed. More than LongestHold counts as that.
	RetryAfter time.Duration
}

// Broken reports that a line got no answer: a transport error, or another status of 5xx.
type Broken struct{ Load }

// Evicted reports that Tidefill ended a line. It says nothing about the runner.
type Evicted struct {
	Load
	// Latency is the time from the line's start to its end.
	Latency time.Duration
}

// FirstToken reports that a line brought its first token, or that its prompt was computed.
type FirstToken struct {
	Load
	// Latency is the time from the line's start to that token; 0: only metrics showed that its
	// prompt was computed.
	Latency time.Duration
	// PromptTokens is an estimate for the line.
	PromptTokens int
	// CachedTokens of the PromptTokens were expected in the runner's prefix cache; 0: none.
	CachedTokens int
}

// TokenGaps reports that streamed lines of a runner brought further tokens. One gap is one
// iteration of the engine: streams of one runner get their tokens together.
type TokenGaps struct {
	Load
	// Gaps is the number of gaps between tokens of one stream since the last report.
	Gaps int
	// Time is the sum of these gaps.
	Time time.Duration
}

// Read reports that a reading has arrived.
type Read struct {
	// Runner is whose metrics were read; empty: those of the pool's gateway.
	Runner string
	// Reading is shared: nobody writes to it.
	Reading *Reading
}

// DeadlineDemand reports what the deadlines of the pool's jobs require.
type DeadlineDemand struct {
	// Lines is the number of lines that the pool would have to carry from now on to meet all its
	// deadlines.
	Lines float64
}

// About returns the runner.
func (o *RunnerLeft) About() string { return o.Runner }

// About returns the runner.
func (o *Read) About() string { return o.Runner }

// About returns that it is the pool.
func (*DeadlineDemand) About() string { return "" }

func (*RunnerJoined) isObservation()   {}
func (*RunnerLeft) isObservation()     {}
func (*Started) isObservation()        {}
func (*Answered) isObservation()       {}
func (*Shed) isObservation()           {}
func (*Broken) isObservation()         {}
func (*Evicted) isObservation()        {}
func (*FirstToken) isObservation()     {}
func (*TokenGaps) isObservation()      {}
func (*Read) isObservation()           {}
func (*DeadlineDemand) isObservation() {}

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
