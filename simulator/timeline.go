package simulator

import (
	"math"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Timeline is the state of a run over time, for charts. Each series has a value for each of At; an
// unknown value is NaN, null in JSON. "Since the last sample" means the time from the previous
// value of At.
type Timeline struct {
	// Every is the time between two samples in seconds: ten, and more for long runs.
	Every float64 `json:"every_s"`
	At    Series  `json:"at_s"`

	// Attainment, TTFT and TPOT are of the interactive requests answered since the last sample.
	// (The figures of Interactive count requests by their arrival.)
	Attainment Series         `json:"attainment"`
	TTFT       QuantileSeries `json:"ttft_ms"`
	TPOT       QuantileSeries `json:"tpot_ms"`
	// Running and Waiting are requests in the engines, including batch lines. KVUsed is the share
	// of KV blocks in use.
	Running Series `json:"running"`
	Waiting Series `json:"waiting"`
	KVUsed  Series `json:"kv_used"`
	// InFlight is the number of batch lines in flight, Allowance the number that is allowed, Reason
	// why no more are in flight.
	InFlight  Series        `json:"in_flight"`
	Allowance Series        `json:"allowance"`
	Reason    []plan.Reason `json:"reason"`
	// TargetShare is the share of the TPOT objective that the policy steers iterations to.
	// PromptAllowance is the number of batch prompt tokens that it lets wait on a runner. Both are
	// of the first pool, and NaN if its policy has no such value.
	TargetShare     Series `json:"target_share"`
	PromptAllowance Series `json:"prompt_allowance_tokens"`
	// Harvest is useful batch tokens a second since the last sample.
	Harvest Series `json:"harvest_tok_s"`
	// Wanted, Ready and Starting count replicas.
	Wanted   Series `json:"replicas_wanted"`
	Ready    Series `json:"replicas_ready"`
	Starting Series `json:"replicas_starting"`
	// Iteration is the mean time of an iteration since the last sample, by replica, for the first
	// maxIterationSeries of them.
	Iteration []ReplicaSeries `json:"iteration_ms"`
	// Predictions record when jobs with a deadline were predicted to finish.
	Predictions []Prediction `json:"predictions"`
}

// QuantileSeries is two quantiles over time.
type QuantileSeries struct {
	P50 Series `json:"p50"`
	P99 Series `json:"p99"`
}

// ReplicaSeries is the series of one replica.
type ReplicaSeries struct {
	Replica string `json:"replica"`
	Values  Series `json:"values"`
}

// Prediction is when a job was predicted to finish, in seconds from the start, at the times At.
// NaN: never, at the pace of that time.
type Prediction struct {
	Job    string `json:"job"`
	At     Series `json:"at_s"`
	Finish Series `json:"finish_s"`
}

// Series is numbers over time. In JSON they have five digits, more than any chart shows; unknown
// values are null.
type Series []float64

// MarshalJSON implements json.Marshaler.
func (s Series) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, v := range s {
		if i > 0 {
			text = append(text, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			text = append(text, "null"...)
			continue
		}
		text = strconv.AppendFloat(text, v, 'g', 5, 64)
	}
	return append(text, ']'), nil
}

// steering adds the values that the policy steers by.
func (t *Timeline) steering(pools [][]flowcontrol.Term) {
	of := func(name string) float64 {
		if len(pools) > 0 {
			for _, term := range pools[0] {
				if term.Runner == "" && term.Name == name {
					return term.Value
				}
			}
		}
		return math.NaN()
	}
	t.TargetShare = append(t.TargetShare, of(flowcontrol.TermTargetShare))
	t.PromptAllowance = append(t.PromptAllowance, of(flowcontrol.TermPromptTokens))
}

// Mean returns the mean of a series' known values from one time to another; NaN if there are none.
func (t *Timeline) Mean(s Series, from, to time.Duration) float64 {
	sum, n := 0.0, 0
	for i, v := range s {
		if at := t.At[i]; at > from.Seconds() && at <= to.Seconds() && !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// These bound the memory of a timeline, however long the run.
const (
	timelineStep       = 10 * time.Second
	maxSamples         = 720
	maxIterationSeries = 16 // replicas
	maxPredictions     = 60 // of a job
	paceWindow         = 10 * time.Minute
)

// timelineStepFor returns the time between two samples of a run: a multiple of timelineStep.
func timelineStepFor(horizon time.Duration) time.Duration {
	times := (horizon + maxSamples*timelineStep - 1) / (maxSamples * timelineStep)
	return timelineStep * max(1, times)
}
