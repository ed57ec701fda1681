package simulator

// Result is what a policy did to a pool, compared with a run without batch work. Shares are from 0
// to 1; times are in the unit that the name states.
type Result struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Hours    float64 `json:"hours"`
	Replicas int     `json:"replicas"`
	// Flow and Order name the policies.
	Flow  string `json:"flowcontrol_policy"`
	Order string `json:"scheduler_policy"`

	NoBatch Interactive `json:"no_batch"`
	// Alone has the figures of the most important class of flows without the requests of the other
	// classes and batch work; nil: there are no other classes.
	Alone *Interactive `json:"alone,omitempty"`
	// OfAlone is the smallest attainment of these requests, as a share of what they attain alone.
	// 0: there are no flows.
	OfAlone     float64     `json:"of_alone,omitempty"`
	Interactive Interactive `json:"interactive"`
	// Loss is the attainment that batch work costs, in percentage points.
	Loss float64 `json:"loss_points"`
	// WorstLoss is the largest loss over any five consecutive minutes, which begin at WorstLossAt.
	WorstLoss   float64 `json:"worst_5_minutes_loss_points"`
	WorstLossAt float64 `json:"worst_5_minutes_loss_at_s"`
	Batch       Batch   `json:"batch"`
	Jobs        []Job   `json:"jobs"`
	// GPUHours are replica hours, from being asked for to the end; NoBatchGPUHours those of the run
	// without batch work.
	GPUHours        float64 `json:"gpu_hours"`
	NoBatchGPUHours float64 `json:"no_batch_gpu_hours"`
	// Pools are the hours and costs of each pool.
	Pools []PoolUse `json:"pools"`
	// Warnings are the policy's.
	Warnings []PolicyWarning `json:"warnings,omitempty"`
	// Timeline is nil unless Setup.Outputs asked for it.
	Timeline *Timeline `json:"timeline,omitempty"`

	minutes []minute // of the interactive requests
}

// Interactive is how the interactive requests fared that arrived after the first and before the
// last minute.
type Interactive struct {
	Requests int `json:"requests"`
	// Attainment is the share of requests that met both objectives.
	Attainment float64   `json:"attainment"`
	TTFT       Quantiles `json:"ttft_ms"`
	TPOT       Quantiles `json:"tpot_ms"` // of each request's mean
	// PrefixHitRate is the share of prompt tokens of finished requests that prefix caches had.
	PrefixHitRate float64 `json:"prefix_hit_rate"`
	// MissedTTFT and MissedTPOT count missed objectives; a request may have missed both.
	MissedTTFT int `json:"missed_ttft"`
	MissedTPOT int `json:"missed_tpot"`
	// Refused could not be served because they exceed the KV cache. They count as missed.
	Refused int `json:"refused"`
	// Lost were cut off with their replica, or found none. They count as missed.
	Lost int `json:"lost"`
	// Undecided were still being answered at the end and had missed nothing so far. They are not
	// among Requests.
	Undecided int `json:"undecided"`
	// Retries are further tries by users who had timed out. GaveUp are requests that their users
	// tried no more; they count as missed.
	Retries int `json:"retries,omitempty"`
	GaveUp  int `json:"gave_up,omitempty"`
	// Worst5Minutes is the lowest attainment over five consecutive minutes, which begin at
	// Worst5MinutesAt.
	Worst5Minutes   float64 `json:"worst_5_minutes"`
	Worst5MinutesAt float64 `json:"worst_5_minutes_at_s"`
	// Overload lists where and when replicas could not keep up. Means over such spans depend on the
	// length of the run.
	Overload []Overload `json:"overload,omitempty"`
	// Classes are the classes of traffic, if there are several. The first has no name and holds the
	// requests without a class.
	Classes []Class `json:"classes,omitempty"`
	// Flow has the figures of requests that passed through Tidefill; nil: they did not, or are of
	// several classes.
	Flow *Flow `json:"flow,omitempty"`
}

// Class is how one class of interactive traffic fared.
type Class struct {
	Name string `json:"class"`
	Interactive
}

// Overload is a period, in seconds, in which requests on a replica waited for their first token
// more than five times as long as their objective.
type Overload struct {
	Replica string  `json:"replica"`
	From    float64 `json:"from_s"`
	To      float64 `json:"to_s"`
}

// Quantiles are of times, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Batch is the harvest: lines answered before the end of the run.
type Batch struct {
	Lines  int   `json:"lines"`
	Failed int   `json:"failed"` // answered with an error
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	// Useful is Input and Output together.
	Useful int64 `json:"useful_tokens"`
	// Wasted is the number of tokens that were computed for nothing, for lines that were evicted or
	// lost their KV blocks.
	Wasted      int64 `json:"wasted_tokens"`
	Preemptions int   `json:"preemptions"`
	// Evictions counts lines that were canceled before their answer, by the policy or because their
	// replica was to end.
	Evictions int `json:"evictions"`
	// Work is the cost of the answered lines, in seconds of engine iterations.
	Work float64 `json:"work_s"`
	// Sheds counts answers of 503.
	Sheds int `json:"sheds"`
	// Deadlines counts those within the run; Met those of them that were met.
	Deadlines int `json:"deadlines"`
	Met       int `json:"deadlines_met"`
}

// JobOutcome is how a job ended.
type JobOutcome string

// The outcomes.
const (
	Finished     JobOutcome = "finished"
	Expired      JobOutcome = "expired"
	Unfinished   JobOutcome = "unfinished"    // the run ended first
	NotSubmitted JobOutcome = "not_submitted" // the run ended before it was submitted
)

// Job is how one batch fared.
type Job struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Lines int    `json:"lines,omitempty"` // 0: without end
	Done  int    `json:"done"`
	// Failed lines were answered with an error.
	Failed    int        `json:"failed"`
	InFlight  int        `json:"in_flight"` // when the run ended
	Outcome   JobOutcome `json:"outcome"`
	Submitted float64    `json:"submitted_s"`
	Finished  float64    `json:"finished_s,omitempty"`
	Deadline  float64    `json:"deadline_s,omitempty"`
	// Flagged is when it was first reported infeasible; 0: never.
	Flagged float64 `json:"flagged_s,omitempty"`
	// Forecast was made when it was submitted; nil: none.
	Forecast *JobForecast `json:"forecast,omitempty"`
}

// JobForecast is when a job was expected to end: four of five end between Earliest and Latest. 0:
// not foreseen.
type JobForecast struct {
	Verdict  string  `json:"verdict"`
	Finish   float64 `json:"finish_s,omitempty"`
	Earliest float64 `json:"earliest_s,omitempty"`
	Latest   float64 `json:"latest_s,omitempty"`
}

// LateByMinute returns the number of interactive requests that missed an objective or were refused,
// by the minute of their arrival after the first edge.
func (r Result) LateByMinute() []int { return lateByMinute(r.minutes) }

func lateByMinute(minutes []minute) []int {
	late := make([]int, len(minutes))
	for i, m := range minutes {
		late[i] = m.judged - m.attained
	}
	return late
}
