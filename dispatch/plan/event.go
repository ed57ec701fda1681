package plan

import (
	"cmp"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// Event is an input of Planner.Step: one of the types below.
type Event interface{ isEvent() }

// RunnerUp adds a runner, or changes the models that it serves.
type RunnerUp struct {
	Runner string
	// Pool is the name of the runner's pool. Runners of the same pool that serve the same models
	// share a flow control. Empty: it shares one with the other runners without a pool that serve
	// its models.
	Pool   string
	Models []string
	// Reserved says that only batches that name the pool may use it.
	Reserved bool
	// Instead names the pool whose fallback the runner is: a server elsewhere that has a price. It
	// gets requests for which that pool has no place, and lines of batches whose deadline it can't
	// meet. Empty: it is no fallback. A fallback is Reserved, and its Pool has no other runner.
	Instead string
	// Unlisted says that the runner has no list of models: they come from batches. More models do
	// not make it another runner, so what was measured of its pool still holds.
	Unlisted bool
	// Access says which engine gets its lines.
	Access flowcontrol.Access
	// Gateway is the name of the gateway that its lines go to; empty: to the runner itself. If a
	// gateway asks for a pause, it means all its runners.
	Gateway string
	// Engine identifies the engine behind the runner, as far as is known: a runner that serves with
	// another engine has another one. Empty: it is as the runner's name. A change while the runner
	// is there changes nothing.
	Engine string
}

// engine identifies the engine.
func (ev RunnerUp) engine() string { return cmp.Or(ev.Engine, ev.Runner) }

// RunnerStop stops lines from starting on a runner that takes none by what it says of itself, or
// ends that.
type RunnerStop struct {
	Runner string
	// Reason is why no line may start there, until Until. Flowing: nothing stops them.
	Reason Reason
	Until  time.Time
}

// RunnerDrain closes a runner for new lines, or opens it again. What was measured of it remains,
// and its lines in flight go on. It holds for a runner that comes later, too.
type RunnerDrain struct {
	Runner   string
	Draining bool
}

// PoolClosed closes the pools of a name for new lines, or opens them again. It holds for pools that
// come later, too.
type PoolClosed struct {
	Pool   string
	Closed bool
}

// RunnerGone removes a runner from the deployment. Its lines in flight still end with Finished.
type RunnerGone struct{ Runner string }

// BatchPut adds a batch, or changes it: it was paused, resumed or got other limits.
type BatchPut struct{ Batch Batch }

// BatchGone removes a batch: it is done, cancelled, expired or stopped, and starts no more lines.
type BatchGone struct{ Batch string }

// Feasibility reports whether capacity planning expects a batch to meet its deadline at all. A
// batch that cannot meet it gets only the slots that others leave.
type Feasibility struct {
	Batch      string
	Infeasible bool
}

// Loaded answers a Claim with the lines of a claimed chunk, or with none.
type Loaded struct {
	Key   JobKey
	Chunk int
	Lines []Line
	// Done counts the chunk's other lines, which have a result already.
	Done int
	// More says that there may be further chunks to claim.
	More bool
	// Wait is the time to wait before the next claim of the job, because the store did not answer
	// or canary lines are in flight. 0: no wait.
	Wait time.Duration
	// Failed is why the claim failed, which the next one may not. Flowing: it did not fail.
	Failed Reason
}

// Unloaded takes back the lines of a chunk that have no result, none of which is in flight. They
// are left, for whoever claims the chunk.
type Unloaded struct {
	Key   JobKey
	Chunk int
}

// MoreChunks says that chunks of a job can be claimed now: another dispatcher has released them, or
// the canary lines were answered.
type MoreChunks struct{ Key JobKey }

// Finished reports the end of a Start. Each Start needs exactly one.
type Finished struct {
	Start   Start
	Outcome Outcome
	// Unsent says that the line was not sent, since it is damaged: the outcome says nothing about
	// the runner.
	Unsent bool
	// Status of the HTTP answer. 0: there was none.
	Status int
	// Foreign says that the body of an error is not one of the API, such as a page in HTML: the
	// request probably met another server. For Refused.
	Foreign bool
	// Unknown says that the runner does not know the model or the route, whatever the line says.
	// For Denied.
	Unknown bool
	// RetryAfter is the value of the header Retry-After. 0: none.
	RetryAfter time.Duration
	// Latency from sending to the last byte.
	Latency time.Duration
	// InputTokens and OutputTokens as in the usage of the answer. 0: unknown.
	InputTokens, OutputTokens int
	// CachedTokens is the number of the InputTokens that were found in the runner's prefix cache.
	// 0: none, or unknown.
	CachedTokens int
	// PromptGrowth is the number of tokens by which the prompt of the next attempt is longer than
	// that of this one, since it repeats the answer. For CheckFailed.
	PromptGrowth int
}

// FirstToken reports the first token of a Start with Stream.
type FirstToken struct {
	Start Start
	// Latency from sending to that token.
	Latency time.Duration
}

// TokenGaps reports the times between tokens of streams of a runner since the last report: their
// number and their sum. The streams of an engine get their tokens together, so one stream is
// enough.
type TokenGaps struct {
	Runner string
	Gaps   int
	Time   time.Duration
}

// GapsInterval is the interval at which drivers report TokenGaps: some iterations of most engines,
// and soon enough to delay the next prompt while interactive prompts are computed. With an interval
// of a second the same interactive loss costs a twentieth of the harvest.
const GapsInterval = 250 * time.Millisecond

// Reading is a sample of a runner's metrics. If Runner is empty, it is a sample of the gateway in
// front of the pools of Model, or of all pools if Model is empty too. Of named pools, only those
// get it to which interactive requests come and, unless Pool is empty, that have this name.
type Reading struct {
	Runner, Pool, Model string
	*flowcontrol.Reading
}

// Reconfigure replaces the configuration, except for Tuning.Cost, by which the work of jobs has
// been measured. It must be valid, as New's. Lines in flight and ready ones stay. The pools whose
// flow control is configured differently get a new controller, which starts as in a new pool; those
// of the other pools keep what they have learned.
type Reconfigure struct {
	Config    Config
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
	// Pools names those that are configured. A named pool without a runner that is not among them
	// is dropped. Nil: all pools count as configured.
	Pools []string
}

// Hold stops all starts for a reason outside the pools, such as a full disk. An empty reason ends
// it.
type Hold struct{ Reason Reason }

// Room limits the lines of a job in flight to those whose answers can be kept, or ends the limit.
type Room struct {
	Key JobKey
	// Reason is what keeps other answers from being kept. Flowing: there is no limit.
	Reason Reason
	Lines  int // in flight at most; 0: none may start
}

// Drain stops all starts for good.
type Drain struct{}

// Tick reports that the time Actions.Wake has come.
type Tick struct{}

func (RunnerUp) isEvent()    {}
func (RunnerGone) isEvent()  {}
func (RunnerStop) isEvent()  {}
func (RunnerDrain) isEvent() {}
func (PoolClosed) isEvent()  {}
func (BatchPut) isEvent()    {}
func (BatchGone) isEvent()   {}
func (Feasibility) isEvent() {}
func (Loaded) isEvent()      {}
func (Unloaded) isEvent()    {}
func (MoreChunks) isEvent()  {}
func (*Finished) isEvent()   {}
func (*FirstToken) isEvent() {}
func (TokenGaps) isEvent()   {}
func (Reading) isEvent()     {}
func (Reconfigure) isEvent() {}
func (Hold) isEvent()        {}
func (Room) isEvent()        {}
func (Drain) isEvent()       {}
func (Tick) isEvent()        {}
