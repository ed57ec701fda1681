package recording

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Version is the version of the format.
const Version = 1

// Header is the first row of each file.
type Header struct {
	Version int       `json:"tidefill_recording"`
	Began   time.Time `json:"began"` // times of entries are seconds since then
	// Policy is the flow-control policy. TTFT and TPOT are the objectives of interactive requests,
	// in seconds.
	Policy string  `json:"policy"`
	TTFT   float64 `json:"slo_ttft_s"`
	TPOT   float64 `json:"slo_tpot_s"`
}

// Entry is an event. Exactly one of its pointers is set.
type Entry struct {
	At        float64    `json:"t"` // seconds since Header.Began
	Runner    *Runner    `json:"runner,omitempty"`
	Job       *Job       `json:"job,omitempty"`
	Line      *Line      `json:"line,omitempty"`
	Gaps      *Gaps      `json:"gaps,omitempty"`
	Reading   *Reading   `json:"reading,omitempty"`
	Latencies *Latencies `json:"latencies,omitempty"`
	Shadow    *Shadow    `json:"shadow,omitempty"`
	// Lost counts the entries before this one that were dropped.
	Lost int `json:"lost,omitempty"`
}

// Runner is a runner that was added, with its models, or removed: then it has none.
type Runner struct {
	ID     int   `json:"id"`
	Models []int `json:"models,omitempty"`
}

// Job is the lines of a batch for one model, when the batch was added.
type Job struct {
	ID    int `json:"id"`
	Model int `json:"model"`
	Lines int `json:"lines"` // left
	// mean prompt tokens of a line, as estimated from its bytes
	Prompt float64 `json:"prompt"`
	// mean limit of output tokens of the lines; 0: they have none
	Most     float64 `json:"most,omitempty"`
	Priority int     `json:"priority,omitempty"`   // the batch's
	Deadline float64 `json:"deadline_s,omitempty"` // seconds from the entry; 0: none
	// seconds since it was created, if that was before the recording began
	Age float64 `json:"age_s,omitempty"`
}

// Line is a request that has ended.
type Line struct {
	Job    int    `json:"job"`
	Runner int    `json:"runner"`
	End    string `json:"end"` // the outcome, as endOf names it
	// Took is the seconds from sending the request to its end, First to its first token. 0: it was
	// not streamed.
	Took  float64 `json:"took_s"`
	First float64 `json:"first_s,omitempty"`
	// Prompt, Cached (of these) and Output are the tokens as in the usage of the answer. 0:
	// unknown.
	Prompt int `json:"prompt,omitempty"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output,omitempty"`
}

// Gaps are iterations of a runner, observed between the tokens of streamed lines.
type Gaps struct {
	Runner int     `json:"runner"`
	Count  int     `json:"count"`
	Took   float64 `json:"took_s"` // together
	// Lines is the number of batch lines on the runner then.
	Lines int `json:"lines"`
}

// Shadow is what the shadow policy of a pool would allow, beside what the pool's policy allows.
type Shadow struct {
	Models []int  `json:"models"` // of the pool
	Policy string `json:"policy"` // the shadow's
	// Lines may be in flight in the pool by the shadow, Granted by the pool's policy. Reason and
	// GrantedReason are why no more. Empty: nothing limits.
	Lines         int    `json:"lines"`
	Reason        string `json:"reason,omitempty"`
	Granted       int    `json:"granted"`
	GrantedReason string `json:"granted_reason,omitempty"`
	// InFlight is the number of lines in flight.
	InFlight int `json:"in_flight"`
}

// Number is a value that may be unknown: NaN, which is left out of the JSON.
type Number float64

// IsZero reports whether the number is unknown, for the JSON option omitzero.
func (n Number) IsZero() bool { return math.IsNaN(float64(n)) }

// Known reports whether the number is known.
func (n Number) Known() bool { return !n.IsZero() }

// Reading is a flowcontrol.Reading of a runner or of the gateway.
type Reading struct {
	Source string `json:"source"` // metrics, capabilities or gateway
	Runner int    `json:"runner,omitempty"`
	Model  int    `json:"model,omitempty"` // of a gateway's; 0: all
	Age    Number `json:"age_s,omitzero"`  // time from the sample to the entry

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

// UnmarshalJSON sets missing values to unknown.
func (r *Reading) UnmarshalJSON(text []byte) error {
	type plain Reading
	nan := Number(math.NaN())
	read := plain{
		Age: nan, Running: nan, Waiting: nan, KVUsed: nan, KVTokens: nan, PromptTokens: nan,
		CachedTokens: nan, OutputTokens: nan, Preemptions: nan,
		TTFTRequests: nan, TTFTLate: nan, TPOTRequests: nan, TPOTLate: nan,
	}
	if err := decodeStrict(text, &read); err != nil {
		return err
	}
	*r = Reading(read)
	return nil
}

// sourceNames maps the sources of readings to their names in a recording.
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

// Latencies are histograms: of all requests of an engine, or of the interactive requests of the
// gateway. They only grow.
type Latencies struct {
	Runner int       `json:"runner,omitempty"` // 0: the gateway's
	Model  int       `json:"model,omitempty"`  // of the gateway's; 0: all
	TTFT   Histogram `json:"ttft,omitempty"`
	TPOT   Histogram `json:"tpot,omitempty"`
}

// Histogram holds pairs of a bound in seconds and the number of requests that took no longer. The
// last bound is infinite, written as -1.
type Histogram [][2]float64

// newHistogram returns nil if a value of the buckets has no number in JSON.
func newHistogram(buckets []flowcontrol.Bucket) (h Histogram) {
	for _, b := range buckets {
		switch {
		case math.IsNaN(b.Count) || math.IsInf(b.Count, 0) || math.IsNaN(b.Upper) ||
			math.IsInf(b.Upper, -1):
			return nil
		case math.IsInf(b.Upper, 1):
			h = append(h, [2]float64{-1, b.Count})
		default:
			h = append(h, [2]float64{b.Upper, b.Count})
		}
	}
	return h
}

// Buckets returns the histogram as flowcontrol uses it.
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

// seconds returns a duration in seconds, rounded to 0.1 ms.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 1e4 }
