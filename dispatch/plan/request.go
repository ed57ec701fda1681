package plan

import (
	"time"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// Request is an interactive request that passes through this process and asks for a place on a
// runner.
type Request struct {
	ID   uint64 // unique; the driver's
	Flow flows.Flow
	// Model is what the runner is asked for: the target of the use case.
	Model string
	// Pools are the names of the pools that it may use. Nil: those that serve the model and are not
	// reserved for batches that name them.
	Pools []string
	// PromptTokens and MaxTokens are estimates; a MaxTokens of 0 is no limit.
	PromptTokens, MaxTokens int
	// Prefix holds hashes of the beginnings of the prompt, each PrefixTokens longer than the one
	// before, by which requests with the same beginning find the runner that has computed it. The
	// hashes of tenants whose caches are kept apart differ.
	Prefix []uint64
	// Streamed says that RequestSpoke will report its first token. Of others nobody knows when
	// their prompts are computed.
	Streamed bool
	// Objective is the longest average time per output token that its use case promises. 0: none.
	Objective time.Duration
	// Deadline is when it must have started. Zero: as its class says.
	Deadline time.Time
	// Avoid lists runners that have failed the request. It goes there only if no other takes it.
	Avoid []string
	// Outside says that only a fallback may take it: it was sent to runners often enough. It does
	// not wait.
	Outside bool
}

// PrefixTokens is the number of tokens that each hash of Request.Prefix covers more than the one
// before.
const PrefixTokens = 256

// RequestCame asks for a place. The planner answers with one element of Actions.Admit or of
// Actions.Refuse, in this step or a later one, unless RequestLeft comes before.
type RequestCame struct{ *Request }

// RequestLeft withdraws a request that has no answer yet: its user has gone.
type RequestLeft struct{ ID uint64 }

// RequestSpoke reports the first token of an admitted request.
type RequestSpoke struct {
	ID uint64
	// Latency from the start to that token.
	Latency time.Duration
}

// RequestsDecoded reports what the streams of a runner's requests brought since the last report:
// tokens, and the number and the sum of the times between tokens of each stream.
type RequestsDecoded struct {
	Runner string
	Tokens int
	Gaps   int
	Time   time.Duration
}

// RequestEnded reports the end of an admitted request. Each needs exactly one.
type RequestEnded struct {
	ID      uint64
	Outcome Outcome
	// Status of the HTTP answer. 0: there was none.
	Status     int
	RetryAfter time.Duration
	// Latency from the start to the last byte.
	Latency time.Duration
	// The tokens are those in the usage of the answer, or as counted. 0: unknown.
	PromptTokens, CachedTokens, OutputTokens, ReasoningTokens int
}

// Admission is a place for a request. It starts now.
type Admission struct {
	ID     uint64
	Runner string
	Waited time.Duration
	// Why is what the request waited for. Flowing: it did not wait. Fallback: it got no place in
	// its own pool.
	Why Reason
	// Instead is the pool for which a fallback answers; empty: the runner is no fallback.
	Instead string
	// Model is the name that the runner has for the request's model; empty: the same. The driver
	// sets it, since only it knows the names that servers have.
	Model string
	// Cached is the number of prompt tokens that are expected in the runner's prefix cache.
	Cached int
}

// Refusal is a request that gets no place.
type Refusal struct {
	ID uint64
	// Why is TooMany or Waited if requests of its class or others have the places, NoRunner if
	// none serves the model, RunnersDown if none of those that do can be reached, and otherwise why
	// none of these takes requests.
	Why Reason
	// Waited is the time for which it has waited.
	Waited time.Duration
	// RetryAfter is a guess of when there may be a place.
	RetryAfter time.Duration
}

func (RequestCame) isEvent()     {}
func (RequestLeft) isEvent()     {}
func (RequestSpoke) isEvent()    {}
func (RequestsDecoded) isEvent() {}
func (*RequestEnded) isEvent()   {}
