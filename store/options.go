package store

import (
	"encoding/json"
	"time"
)

// Options are the extensions of the create request, resolved: durations have become times, defaults
// are filled in.
type Options struct {
	Priority     int // higher goes first under the priority policy
	StopAtFailed int // stop once this many lines have failed; 0: no limit
	// stop when more than this share of the finished lines has failed; 0: no limit
	MaxFailedRatio float64
	MaxTotalTokens int64 // stop when the answers' usage exceeds this; 0: no limit
	RetryAttempts  int   // attempts per line, the first included; 0: the daemon's default
	// HTTP statuses that are worth another attempt; nil: the daemon's default
	RetryOn []int
	Canary  int // lines that decide whether the rest runs; 0: none
	// CanaryMaxFailedRatio is the share of the canary lines that may fail without stopping the
	// batch; 0: none may.
	CanaryMaxFailedRatio float64
	GroupBy              string // none, model or prefix
	MaxConcurrency       int    // lines in flight at most; 0: no limit of its own
	OutputPerInput       bool   // one output and error file per input instead of joined ones
	OutputLife           time.Duration
	RetryOf              string // the batch whose failed lines these are
}

// Parameters is what may be large of a create request. It is kept beside the batch, so that
// listings and dispatchers, which hold many batches, don't hold it. It never changes.
type Parameters struct {
	OptionsJSON json.RawMessage // the `tidefill` object, whole
	Defaults    []ParameterRule
	Overrides   []ParameterRule
}

// ParameterRule sets top-level body parameters of the lines it applies to: all, those of one url,
// those of one model.
type ParameterRule struct {
	URL, Model string // empty: any
	Parameters map[string]json.RawMessage
}
