package simulator

import (
	"math"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Tape is a run's time line, to be drawn. All series have a value for each of At; one that is not
// known there is NaN, null in JSON. What "passed since the last" tells of is the time from one of
// At to the next.
type Timeline struct {
	// Every is the time between two samples in seconds: ten, and more for long runs.
	Every float64 `json:"every_s"`
	At    Series  `json:"at_s"`

	// Attainment, TTFT and TPOT are of the interactive requests answered since the last sample,
	// whenever they came: the figures of Interactive count them by their arrival.
	Attainment Series         `json:"attainment"`
	TTFT       QuantileSeries `json:"ttft_ms"`
	TPOT       QuantileSeries `json:"tpot_ms"`
	// Running and Waiting are requests in the engines, batch lines among them; KVUsed the share of
	// their KV blocks.
	Running Series `json:"running"`
	Waiting Series `json:"waiting"`
	KVUsed  Series `json:"kv_used"`
	// InFlight is batch lines under way, Allowance how many may be, Reason why no more are.
	InFlight  Series        `json:"in_flight"`
	Allowance Series        `json:"allowance"`
	Reason    []plan.Reason `json:"reason"`
	// Theta is the share of the promised time per token that the policy lets iterations take,
	// Prompt how many prompt tokens of ours it lets wait on a runner; of the first pool, NaN where
	// its policy steers by neither.
	TargetShare     Series `json:"target_share"`
	PromptAllowance Series `json:"prompt_allowance_tokens"`
	// Harvest is useful batch tokens a second since the last sample.
	Harvest Series `json:"harvest_tok_s"`
	// Wanted, Ready and Starting count replicas.
	Wanted   Series `json:"replicas_wanted"`
	Ready    Series `json:"replicas_ready"`
	Starting Series `json:"replicas_starting"`
	// Iteration is the mean time of an iteration since the last sample, by replica; of the first
	// mostDrawn of them.
	Iteration []ReplicaSeries `json:"iteration_ms"`
	// Predictions tell when jobs with a deadline were thought to finish.
	Predictions []Prediction `json:"predictions"`
}

// QuantileSeries are two quantiles over time.
type QuantileSeries struct {
	P50 Series `json:"p50"`
	P99 Series `json:"p99"`
}

// ReplicaSeries is one replica's.
type ReplicaSeries struct {
	Replica string `json:"replica"`
	Values  Series `json:"values"`
}

// Prediction is when a job was thought to finish, in seconds from the start, as
// seen at the times At. NaN: never, at the pace of that time.
type Prediction struct {
	Job    string `json:"job"`
	At     Series `json:"at_s"`
	Finish Series `json:"finish_s"`
}

// Series is numbers over time. In JSON they have five digits, more than any plot
// shows, and those that are not known are null.
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

// steering adds what the policy steers by.
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
	t.TargetShare = append(t.TargetShare, of("theta"))
	t.PromptAllowance = append(t.PromptAllowance, of("prompt level"))
}

// Between is the mean of what is known of a series from one time to another; NaN if nothing is.
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

// How fine a tape is, so that its memory is bounded however long the run.
const (
	timelineStep       = 10 * time.Second
	maxSamples         = 720
	maxIterationSeries = 16 // replicas
	maxPredictions     = 60 // of a job
	paceWindow         = 10 * time.Minute
)

// tapeStep is the time between two samples of a run: a whole number of tapeEvery.
func timelineStepFor(horizon time.Duration) time.Duration {
	times := (horizon + maxSamples*timelineStep - 1) / (maxSamples * timelineStep)
	return timelineStep * max(1, times)
}
