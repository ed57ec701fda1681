package recording

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Version is of the format.
const Version = 1

// Header is the first line of each file.
type Header struct {
	Version int       `json:"tidefill_recording"`
	Began   time.Time `json:"began"` // all times of entries are seconds since then
	// Policy is the flow control in force, TTFT and TPOT what interactive users were promised, in
	// seconds.
	Policy string  `json:"policy"`
	TTFT   float64 `json:"slo_ttft_s"`
	TPOT   float64 `json:"slo_tpot_s"`
}

// Entry is something that happened. One of its pointers is set.
type Entry struct {
	At        float64    `json:"t"` // seconds since Header.Began
	Runner    *Runner    `json:"runner,omitempty"`
	Job       *Job       `json:"job,omitempty"`
	Line      *Line      `json:"line,omitempty"`
	Gaps      *Gaps      `json:"gaps,omitempty"`
	Reading   *Reading   `json:"reading,omitempty"`
	Latencies *Latencies `json:"latencies,omitempty"`
	// Lost counts entries before this one that could not be written in time.
	Lost int `json:"lost,omitempty"`
}

// Runner came, with the models it serves, or went: then it serves none.
type Runner struct {
	ID     int   `json:"id"`
	Models []int `json:"models,omitempty"`
}

// Job is a batch's lines of one model, as it came.
type Job struct {
	ID    int `json:"id"`
	Model int `json:"model"`
	Lines int `json:"lines"` // left
	// mean tokens of a line, as estimated from its bytes
	Prompt float64 `json:"prompt"`
	// mean of the lines' own limits on output; 0: they have none
	Most     float64 `json:"most,omitempty"`
	Priority int     `json:"priority,omitempty"`   // the batch's
	Deadline float64 `json:"deadline_s,omitempty"` // seconds from now; 0: none
	// seconds since it was created; some when the recording began later
	Age float64 `json:"age_s,omitempty"`
}

// Line is a request that ended.
type Line struct {
	Job    int    `json:"job"`
	Runner int    `json:"runner"`
	End    string `json:"end"` // as plan.Outcome calls it
	// Took is seconds from sending it to its end, First to its first token; 0: it was not streamed.
	Took  float64 `json:"took_s"`
	First float64 `json:"first_s,omitempty"`
	// Prompt, Cached (of those) and Output tokens, as the answer tells; 0: it doesn't.
	Prompt int `json:"prompt,omitempty"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output,omitempty"`
}

// Gaps are iterations of a runner seen through streamed lines.
type Gaps struct {
	Runner int     `json:"runner"`
	Count  int     `json:"count"`
	Took   float64 `json:"took_s"` // together
	// Lines are those of ours on the runner meanwhile.
	Lines int `json:"lines"`
}

// Number is a figure that may be unknown: NaN, and then left out.
type Number float64

// IsZero says that the number is to be left out.
func (n Number) IsZero() bool { return math.IsNaN(float64(n)) }

// Known says that it isn't.
func (n Number) Known() bool { return !n.IsZero() }

// Reading is what a look at a runner, or at the gateway, showed. Fields are those of
// flowcontrol.Reading.
type Reading struct {
	Source string `json:"source"` // metrics, capabilities or gateway
	Runner int    `json:"runner,omitempty"`
	Model  int    `json:"model,omitempty"` // of a gateway's; 0: all
	Age    Number `json:"age_s,omitzero"`  // how long before it was told it was true

	Running      Number `json:"running,omitzero"`
	Waiting      Number `json:"waiting,omitzero"`
	KVUsed       Number `json:"kv_used,omitzero"`
	KVTokens     Number `json:"kv_tokens,omitzero"`
	PromptTokens Number `json:"prompt_tokens,omitzero"`
	CachedTokens Number `json:"cached_tokens,omitzero"`
	OutputTokens Number `json:"output_tokens,omitzero"`
	Preemptions  Number `json:"preemptions,omitzero"`
	TTFTRequests Number `json:"ttft_requests,omitzero"`
	TTFTLate     Number `json:"ttft_late,omitzero"`
	TPOTRequests Number `json:"tpot_requests,omitzero"`
	TPOTLate     Number `json:"tpot_late,omitzero"`
}

// UnmarshalJSON makes what is not there unknown.
func (r *Reading) UnmarshalJSON(text []byte) error {
	type plain Reading
	nan := Number(math.NaN())
	read := plain{
		Age: nan, Running: nan, Waiting: nan, KVUsed: nan, KVTokens: nan, PromptTokens: nan,
		CachedTokens: nan, OutputTokens: nan, Preemptions: nan,
		TTFTRequests: nan, TTFTLate: nan, TPOTRequests: nan, TPOTLate: nan,
	}
	if err := strictly(text, &read); err != nil {
		return err
	}
	*r = Reading(read)
	return nil
}

// sourceNames are flowcontrol.Source's in a recording.
var sourceNames = map[flowcontrol.Source]string{flowcontrol.Metrics: "metrics",
	flowcontrol.Capabilities: "capabilities", flowcontrol.Gateway: "gateway"}

func newReading(r *flowcontrol.Reading, now time.Time) *Reading {
	number := func(v float64) Number {
		if math.IsInf(v, 0) {
			return Number(math.NaN())
		}
		return Number(v)
	}
	return &Reading{
		Source: sourceNames[r.Source], Age: Number(seconds(now.Sub(r.Sampled))),
		Running: number(r.Running), Waiting: number(r.Waiting), KVUsed: number(r.KVUsed),
		KVTokens:     number(r.KVTokens),
		PromptTokens: number(r.PromptTokens), CachedTokens: number(r.CachedTokens),
		OutputTokens: number(r.OutputTokens), Preemptions: number(r.Preemptions),
		TTFTRequests: number(r.TTFT.Requests), TTFTLate: number(r.TTFT.Late),
		TPOTRequests: number(r.TPOT.Requests), TPOTLate: number(r.TPOT.Late),
	}
}

// Latencies are histograms: of an engine's requests, ours among them, or of the gateway's
// interactive ones. They only grow.
type Latencies struct {
	Runner int       `json:"runner,omitempty"` // 0: the gateway's
	Model  int       `json:"model,omitempty"`  // of the gateway's; 0: all
	TTFT   Histogram `json:"ttft,omitempty"`
	TPOT   Histogram `json:"tpot,omitempty"`
}

// Histogram is pairs of an edge in seconds and how many requests took that long at most. The last
// edge is infinite, written as -1.
type Histogram [][2]float64

func newHistogram(buckets []flowcontrol.Bucket) (h Histogram) {
	for _, b := range buckets {
		switch {
		case math.IsNaN(b.Count) || math.IsInf(b.Count, 0) || math.IsNaN(b.Upper):
			return nil
		case math.IsInf(b.Upper, 1):
			h = append(h, [2]float64{-1, b.Count})
		default:
			h = append(h, [2]float64{b.Upper, b.Count})
		}
	}
	return h
}

// Buckets are the histogram's in the form that flowcontrol reads.
func (h Histogram) Buckets() []flowcontrol.Bucket {
	buckets := make([]flowcontrol.Bucket, len(h))
	for i, pair := range h {
		buckets[i] = flowcontrol.Bucket{Upper: pair[0], Count: pair[1]}
		if pair[0] < 0 {
			buckets[i].Upper = math.Inf(1)
		}
	}
	return buckets
}

// seconds are rounded to a tenth of a millisecond, below which nothing here is exact.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 1e4 }
