package simulator

// Result is what a policy did to a pool, beside the same day without batch work.
// Shares are parts of one, times as their names say.
type Result struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Hours    float64 `json:"hours"`
	Replicas int     `json:"replicas"`
	// Flow and Order name the policies.
	Flow  string `json:"flowcontrol_policy"`
	Order string `json:"scheduler_policy"`

	NoBatch     Interactive `json:"no_batch"`
	Interactive Interactive `json:"interactive"`
	// Loss is the attainment that batch work costs, in percentage points.
	Loss float64 `json:"loss_points"`
	// WorstLoss is the largest loss over any five minutes on end, which begin at WorstLossAt.
	WorstLoss   float64 `json:"worst_5_minutes_loss_points"`
	WorstLossAt float64 `json:"worst_5_minutes_loss_at_s"`
	Batch       Batch   `json:"batch"`
	Jobs        []Job   `json:"jobs"`
	// GPUHours are replica hours, from being asked for to being gone; NoBatchGPUHours those of the
	// quiet day.
	GPUHours        float64 `json:"gpu_hours"`
	NoBatchGPUHours float64 `json:"no_batch_gpu_hours"`
	// Pools are what each was used and paid for.
	Pools []PoolUse `json:"pools"`
	// Tape is the time line; nil unless Setup.Watch asked for it.
	Timeline *Timeline `json:"timeline,omitempty"`

	minutes []minute // of the interactive requests
}

// Interactive is how the interactive requests fared that came between the first
// and the last minute.
type Interactive struct {
	Requests int `json:"requests"`
	// Attainment is the share that got both its times.
	Attainment float64   `json:"attainment"`
	TTFT       Quantiles `json:"ttft_ms"`
	TPOT       Quantiles `json:"tpot_ms"` // of each request's mean
	// MissedTTFT, MissedTPOT: one may have missed both.
	MissedTTFT int `json:"missed_ttft"`
	MissedTPOT int `json:"missed_tpot"`
	// Refused could not be served, being longer than the KV cache; they are missed too.
	Refused int `json:"refused"`
	// Lost were cut off with their replica, or found none; they are missed too.
	Lost int `json:"lost"`
	// Undecided were still being answered at the end, and in time so far. They are not among
	// Requests.
	Undecided int `json:"undecided"`
	// Retries are further tries by users who had hung up, GaveUp the requests that they tried no
	// more; these are missed too.
	Retries int `json:"retries,omitempty"`
	GaveUp  int `json:"gave_up,omitempty"`
	// Worst5Minutes is the least attainment over five minutes on end, which begin at
	// Worst5MinutesAt.
	Worst5Minutes   float64 `json:"worst_5_minutes"`
	Worst5MinutesAt float64 `json:"worst_5_minutes_at_s"`
	// Overload is where and when replicas could not keep up; times over such spans grow as long as
	// one looks, and mean nothing.
	Overload []Overload `json:"overload,omitempty"`
	// Classes are the classes of traffic one by one, where there are several; the first, without a
	// name, is what has no other.
	Classes []Class `json:"classes,omitempty"`
}

// Class is how one class of interactive traffic fared.
type Class struct {
	Name string `json:"class"`
	Interactive
}

// Overload is a span of time, in seconds, in which requests on a replica waited for their first
// token more than five times as long as they may.
type Overload struct {
	Replica string  `json:"replica"`
	From    float64 `json:"from_s"`
	To      float64 `json:"to_s"`
}

// Quantiles of times, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Batch is the harvest: lines answered before the end of the run.
type Batch struct {
	Lines  int   `json:"lines"`
	Failed int   `json:"failed"` // refused by the engine as too long
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	// Useful is Input and Output together.
	Useful int64 `json:"useful_tokens"`
	// Wasted is how many tokens were computed in vain, for lines that were recalled or lost their
	// KV blocks.
	Wasted      int64 `json:"wasted_tokens"`
	Preemptions int   `json:"preemptions"`
	// Recalls are lines that were ended before their answer, by the policy or because their replica
	// was to go.
	Evictions int `json:"evictions"`
	// Work is what the answered lines cost an engine, in seconds of iteration.
	Work float64 `json:"work_s"`
	// Sheds are answers of 503.
	Sheds int `json:"sheds"`
	// Deadlines are those that fell within the run; Met of them were kept.
	Deadlines int `json:"deadlines"`
	Met       int `json:"deadlines_met"`
}

// Fate is what became of a job.
type JobOutcome string

// The fates.
const (
	Finished     JobOutcome = "finished"
	Expired      JobOutcome = "expired"
	Unfinished   JobOutcome = "unfinished"    // the run ended first
	NotSubmitted JobOutcome = "not_submitted" // the run ended before it came
)

// Job is how one batch fared.
type Job struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Lines int    `json:"lines,omitempty"` // 0: without end
	Done  int    `json:"done"`
	// Failed lines were answered too, with an error.
	Failed    int        `json:"failed"`
	InFlight  int        `json:"in_flight"` // when the run ended
	Outcome   JobOutcome `json:"outcome"`
	Submitted float64    `json:"submitted_s"`
	Finished  float64    `json:"finished_s,omitempty"`
	Deadline  float64    `json:"deadline_s,omitempty"`
	// Flagged is when it was first called infeasible; 0: it never was.
	Flagged float64 `json:"flagged_s,omitempty"`
}

// LateByMinute is how many interactive requests missed a promise or were refused,
// by the minute of their arrival after the first edge.
func (r Result) LateByMinute() []int { return lateByMinute(r.minutes) }

func lateByMinute(minutes []minute) []int {
	late := make([]int, len(minutes))
	for i, m := range minutes {
		late[i] = m.judged - m.attained
	}
	return late
}
