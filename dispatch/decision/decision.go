package decision

import (
	"math"
	"strconv"
	"time"
)

// Decision is what flow control saw and decided in a pool at one time. Its JSON is documented in
// docs/console.md.
type Decision struct {
	Time Time `json:"time"`
	// Reason is why the pool starts no more lines: flowing while lines start as others end.
	Reason string `json:"reason"`
	// Granted is what keeps the allowance from being larger; none: nothing does.
	Granted   string `json:"allowance_reason"`
	InFlight  Number `json:"in_flight"`
	Allowance Number `json:"allowance"`
	Jobs      Number `json:"jobs"` // with a line to start
	// Evicted counts the lines evicted since the process started.
	Evicted float64 `json:"evicted_total"`

	// WatchLeft is the longest time for which the policy will go on to watch the pool before lines
	// start, of WatchOf in all, in seconds. Unknown: it does not, or does not know.
	WatchLeft Number `json:"watch_left_s,omitzero"`
	WatchOf   Number `json:"watch_of_s,omitzero"`

	// Unseen says that nothing shows what interactive users feel, so that lines are limited by the
	// times of their own answers.
	Unseen bool `json:"users_unseen,omitzero"`

	// Objective is the limit of the time between tokens of interactive requests, Target what the
	// policy steers it to, and Alone that time without batch work, in milliseconds.
	Objective Number `json:"objective_ms"`
	// Configured is the configured objective, where the policy keeps a lower one. Unknown: it keeps
	// that.
	Configured Number `json:"configured_objective_ms,omitzero"`
	Target     Number `json:"target_ms"`
	Alone      Number `json:"alone_ms"`
	// Slowdown is the time of first tokens as a multiple of that without batch work, by the
	// policy's estimate. SlowdownAllowed is the largest multiple allowed.
	Slowdown        Number `json:"first_token_slowdown"`
	SlowdownAllowed Number `json:"first_token_slowdown_allowed"`
	// FirstTokens are those of the last minute; nil: none were counted. FirstObjective is the limit
	// of their time. FirstAlone is the time within which 95 % of them would come without batch
	// work, by the policy's estimate. Both are in milliseconds.
	FirstTokens    *FirstTokens `json:"first_tokens"`
	FirstObjective Number       `json:"first_token_objective_ms"`
	FirstAlone     Number       `json:"first_token_alone_ms"`
	// Gateway is what a gateway counted; nil: there is none.
	Gateway *Gateway `json:"gateway"`

	Runners []Runner `json:"runners"`
	Terms   []Term   `json:"terms,omitempty"` // of the pool
}

// FirstTokens holds the times of first tokens in the last minute, by a histogram: a time within a
// bucket is an estimate.
type FirstTokens struct {
	// Source is what counted them: metrics of engines, which include those of batch lines, or a
	// gateway.
	Source   string `json:"source"`
	Requests Number `json:"requests"`
	Median   Number `json:"median_ms"`
	P95      Number `json:"p95_ms"`
}

// Gateway is what the gateway in front of a pool counted of interactive requests since the process
// started.
type Gateway struct {
	Age             Number  `json:"age_s"`
	FirstTokens     float64 `json:"first_tokens_total"`
	LateFirstTokens float64 `json:"late_first_tokens_total"`
	Answers         float64 `json:"answers_total"`
	LateAnswers     float64 `json:"late_answers_total"` // by the time for each token
}

// Runner is the part of a Decision that is about one runner.
type Runner struct {
	Name      string `json:"name"`
	InFlight  Number `json:"in_flight"`
	Allowance Number `json:"allowance"`
	Reason    string `json:"reason"`
	Evicting  bool   `json:"evicting"`
	Open      bool   `json:"breaker_open"`
	// Prompt is the number of prompt tokens of lines that wait to be computed. PromptAllowance is
	// the number below which another line may start; unknown: without a limit.
	Prompt          Number `json:"prompt_tokens"`
	PromptAllowance Number `json:"prompt_tokens_allowed"`
	// Reading is the last reading of the runner; nil: there is none.
	Reading *Reading `json:"reading"`
	// Running and Waiting are the interactive requests, by the policy.
	Running Number `json:"interactive_running"`
	Waiting Number `json:"interactive_waiting"`
	// TokenTime is the mean time between two tokens of every user of the runner, in milliseconds;
	// unknown if it was not measured for half a minute.
	TokenTime Number `json:"token_time_ms"`
	// FirstTokens are those of the last minute, batch lines included; nil: none were counted.
	FirstTokens *FirstTokens `json:"first_tokens"`
	Inputs      *Inputs      `json:"inputs,omitempty"`
	Terms       []Term       `json:"terms,omitempty"`
}

// Inputs is what flow control was given about a runner. Fields that nothing shows are left out.
type Inputs struct {
	Metrics      *Metrics      `json:"metrics,omitempty"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	Lines        Lines         `json:"lines"`
}

// Metrics is the last reading of an engine's metrics, batch lines included. Rates are those of the
// time since the decision before.
type Metrics struct {
	Age      Number `json:"age_s"`
	Running  Number `json:"running,omitzero"`
	Waiting  Number `json:"waiting,omitzero"`
	KVUsed   Number `json:"kv_used,omitzero"`
	KVTokens Number `json:"kv_tokens,omitzero"`
	// Prompt are prompt tokens, Cached those of them that were found in the prefix cache.
	Prompt  Number `json:"prompt_tokens_per_s,omitzero"`
	Cached  Number `json:"cached_tokens_per_s,omitzero"`
	Output  Number `json:"output_tokens_per_s,omitzero"`
	Answers Number `json:"answers_per_s,omitzero"`
	// TokenTime is the mean time between two tokens of a request, in milliseconds: that of an
	// iteration.
	TokenTime Number `json:"token_time_ms,omitzero"`
	// Preempted counts preempted requests since the runner was first read.
	Preempted Number `json:"preemptions_total,omitzero"`
}

// Capabilities is the last reading of what a runner says of itself.
type Capabilities struct {
	Age     Number `json:"age_s"`
	Waiting Number `json:"waiting,omitzero"`
	KVUsed  Number `json:"kv_used,omitzero"`
}

// Lines counts batch lines of a runner since it joined.
type Lines struct {
	Answered Number `json:"answered_total"`
	Shed     Number `json:"shed_total"`
	Broken   Number `json:"broken_total"`
	// TokenTime is the mean time between two tokens of streamed lines since the decision before, in
	// milliseconds.
	TokenTime Number `json:"token_time_ms,omitzero"`
}

// Reading is what an engine showed of all its requests, batch lines included.
type Reading struct {
	Source  string `json:"source"`
	Age     Number `json:"age_s"`
	Running Number `json:"running"`
	Waiting Number `json:"waiting"`
	KVUsed  Number `json:"kv_used"`
}

// Term is a figure that the policy decides by.
type Term struct {
	Name  string `json:"name"`
	Value Number `json:"value"`
	Unit  string `json:"unit,omitempty"`
}

// Time is written as Unix seconds, to the millisecond.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(t.UnixMilli())/1000, 'f', 3, 64), nil
}

// Number is a number that may be unknown: NaN or infinite, which is written as null.
type Number float32

// Unknown is the unknown Number.
var Unknown = Number(math.NaN())

// IsZero reports whether the number is unknown, for the JSON option omitzero.
func (n Number) IsZero() bool { return !n.Known() }

// Known reports whether the number is known.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 32), nil
}
