package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Event is something that happened. The concrete types are below.
type Event interface{ isEvent() }

// RunnerUp announces a runner, or that the models it serves have changed.
type RunnerUp struct {
	Runner string
	Models []string
}

// RunnerGone says that a runner is no longer part of the deployment. Lines under way there still
// finish, one way or the other.
type RunnerGone struct{ Runner string }

// BatchPut announces a batch, or that it was paused, resumed or given other limits.
type BatchPut struct{ Batch Batch }

// BatchGone says that no more lines of a batch may start: it is done, cancelled, expired or
// stopped.
type BatchGone struct{ Batch string }

// Judged says whether a batch's deadline can be met at all, as whoever plans capacity has it. One
// that can't gets what others leave.
type Judged struct {
	Batch      string
	Infeasible bool
}

// Loaded answers a Claim: the lines of a claimed chunk, or none.
type Loaded struct {
	Key   JobKey
	Chunk int
	Lines []Line
	// More says that there may be further chunks to claim.
	More bool
	// Again is how long to wait before asking for more (the store did not answer, or canaries are
	// still out); zero: at will.
	Again time.Duration
}

// MoreChunks says that chunks of a job can be claimed now: another dispatcher let go of them, or
// the canaries are home.
type MoreChunks struct{ Key JobKey }

// Finished reports the end of one Start. It must be fed exactly once for each.
type Finished struct {
	Start   Start
	Outcome Outcome
	// Status of the HTTP answer; 0 without one.
	Status int
	// RetryAfter is what the runner asked for; 0: nothing.
	RetryAfter time.Duration
	// Latency from sending to the last byte.
	Latency time.Duration
	// InputTokens and OutputTokens as the answer's usage tells them; 0: unknown.
	InputTokens, OutputTokens int
	// CachedTokens of the InputTokens were found in the runner's prefix cache; 0: none, or unknown.
	CachedTokens int
}

// FirstToken says that a Start with Stream has brought its first token.
type FirstToken struct {
	Start Start
	// Latency from sending to that token.
	Latency time.Duration
}

// TokenGaps tells how fast streams of a runner brought their tokens since it was last told: the
// gaps between two tokens of one stream, how many and how long together. One stream's are enough,
// since all get their tokens together.
type TokenGaps struct {
	Runner string
	Gaps   int
	Time   time.Duration
}

// GapsEvery is how often drivers tell them while there are any: a few iterations of most engines,
// and soon enough to hold the next prompt back while interactive ones are computed. Told once a
// second, the same interactive loss costs a twentieth of the harvest.
const GapsEvery = 250 * time.Millisecond

// Reading is a look at a runner's metrics or, where Runner is empty, at those of what stands before
// the pools of a model; of all pools, where Model is empty too.
type Reading struct {
	Runner, Model string
	*flowcontrol.Reading
}

// Hold stops all starts for a reason that lies outside the pools (a full disk, say); an empty
// reason lets them go on.
type Hold struct{ Reason Reason }

// Drain stops all starts for good.
type Drain struct{}

// Tick is the passing of time: the driver sends it when Actions.Wake has come.
type Tick struct{}

func (RunnerUp) isEvent()    {}
func (RunnerGone) isEvent()  {}
func (BatchPut) isEvent()    {}
func (BatchGone) isEvent()   {}
func (Judged) isEvent()      {}
func (Loaded) isEvent()      {}
func (MoreChunks) isEvent()  {}
func (*Finished) isEvent()   {}
func (*FirstToken) isEvent() {}
func (TokenGaps) isEvent()   {}
func (Reading) isEvent()     {}
func (Hold) isEvent()        {}
func (Drain) isEvent()       {}
func (Tick) isEvent()        {}
