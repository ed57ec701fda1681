package store

import (
	"encoding/json"
	"time"
)

// Options holds the extensions of the create request, with durations resolved to times and defaults
// filled in.
type Options struct {
	Priority     int // a higher one goes first under the priority policy
	StopAtFailed int // stop the batch once this many lines have failed; 0: no limit
	// MaxFailedRatio stops the batch when more than this share of the finished lines has failed; 0:
	// no limit.
	MaxFailedRatio float64
	MaxTotalTokens int64 // stop the batch when the usage of its answers exceeds this; 0: no limit
	RetryAttempts  int   // attempts per line, the first included; 0: the daemon's default
	RetryOn        []int // HTTP statuses that are retried; nil: the daemon's default
	Canary         int   // lines that decide whether the others run; 0: none
	// CanaryMaxFailedRatio is the share of the canary lines that may fail without stopping the
	// batch; 0: none may.
	CanaryMaxFailedRatio float64
	GroupBy              string // none, model or prefix
	MaxConcurrency       int    // lines in flight at most; 0: no limit of its own
	// one output and one error file for each input, not joined ones
	OutputPerInput bool
	OutputLife     time.Duration // of the result files; 0: until they are deleted
	RetryOf        string        // the batch whose failed lines these are
	// Strict refused the batch unless it could meet its deadline; also where the operator does not.
	Strict bool `json:",omitempty"`
}

// Parameters holds the parts of a create request that may be large. It is stored beside the batch,
// so that listings and dispatchers, which hold many batches, do not hold it. It never changes.
type Parameters struct {
	OptionsJSON json.RawMessage // the complete `tidefill` object
	Defaults    []ParameterRule
	Overrides   []ParameterRule
}

// ParameterRule sets top-level body parameters of the lines with its URL and Model.
type ParameterRule struct {
	URL, Model string // empty: any
	Parameters map[string]json.RawMessage
}
