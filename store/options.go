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
	// CheckAttempts limits the answers to a line that are asked for until one passes the check of
	// the batch, the first included; 0: answers are not checked.
	CheckAttempts int `json:",omitempty"`
	Canary        int // lines that decide whether the others run; 0: none
	// CanaryMaxFailedRatio is the share of the canary lines that may fail without stopping the
	// batch; 0: none may.
	CanaryMaxFailedRatio float64
	GroupBy              string // none, model or prefix
	MaxConcurrency       int    // lines in flight at most; 0: no limit of its own
	// one output and one error file for each input, not joined ones
	OutputPerInput bool
	OutputLife     time.Duration // of the result files; 0: until they are deleted
	RetryOf        string        // the batch whose failed lines these are
	// InputURL names the objects of a bucket that were imported as the inputs; empty: none were.
	InputURL string `json:",omitempty"`
	// OutputURL begins the names of the objects that the results are delivered as; empty: they are
	// not delivered.
	OutputURL string `json:",omitempty"`
	// Strict refused the batch unless it could meet its deadline; also where the operator does not.
	Strict bool `json:",omitempty"`

	RequestTimeout time.Duration `json:",omitempty"` // of one request; 0: the daemon's default
	// Backoff holds the delays before the second attempt, the third, and so on; the last one is
	// repeated. Nil: the daemon's default.
	Backoff []time.Duration `json:",omitempty"`
	// Preemptible lets lines in flight be evicted for those of other batches.
	Preemptible bool `json:",omitempty"`
	// NoSpot keeps lines from pools whose replicas the provider reclaims.
	NoSpot bool `json:",omitempty"`
	// Providers lists the providers of pools that lines may use, the first choice first. Nil: any.
	Providers []string `json:",omitempty"`
	// MaxResultBytes stops the batch when its results are larger; 0: no limit.
	MaxResultBytes int64 `json:",omitempty"`
	// Storage is where result files go; nil: with all other files.
	Storage *Storage `json:",omitempty"`
	// MaxLines and MaxInputBytes limit the input; 0: the daemon's limits alone.
	MaxLines      int   `json:",omitempty"`
	MaxInputBytes int64 `json:",omitempty"`
	// Traceparent names the span of the create request, as in W3C Trace Context. Empty: there was
	// none, or traces were off.
	Traceparent string `json:",omitempty"`
}

// Storage is a place for files beside that of the backend. Credentials are read at use.
type Storage struct {
	Backend string // s3, minio, gcs, tos or local
	Bucket  string // a directory, if the backend is local
	Region, EndpointURL,
	// Credentials names a Secret, or a directory of files with its keys.
	Credentials string `json:",omitempty"`
}

// Resolved is what the names in a create request stood for. It never changes.
type Resolved struct {
	// Template and Version are of the deployment template; empty: there is none.
	Template, Version string `json:",omitempty"`
	// Mode is that of the template: dedicated, shared or external.
	Mode string `json:",omitempty"`
	// Models are the names of the template's model that lines may have.
	Models []string `json:",omitempty"`
	// Target is the server of an external template.
	Target  *Target `json:",omitempty"`
	Profile string  `json:",omitempty"` // empty: there is none
	// Priority is that of the profile: high, normal or low.
	Priority string `json:",omitempty"`
	// Tier is the service_tier of the request; empty: there was none.
	Tier string `json:",omitempty"`
	// Window is the completion window in force, if it differs from that of the request.
	Window string `json:",omitempty"`
	// Request is the object aibrix of the request; nil: there was none.
	Request  json.RawMessage `json:",omitempty"`
	Warnings []string        `json:",omitempty"`
}

// Target is a server elsewhere, with the budget that it grants.
type Target struct {
	URL string
	// KeyEnv names the environment variable, KeyFile the file that holds the bearer token.
	KeyEnv, KeyFile string `json:",omitempty"`
	// RequestsPerMinute and TokensPerMinute are the budget; 0: unknown.
	RequestsPerMinute, TokensPerMinute int `json:",omitempty"`
}

// Parameters holds the parts of a create request that may be large. It is stored beside the batch,
// so that listings and dispatchers, which hold many batches, do not hold it. It never changes.
type Parameters struct {
	OptionsJSON json.RawMessage // the complete `tidefill` object
	Defaults    []ParameterRule
	Overrides   []ParameterRule
	Check       *AnswerRules `json:",omitempty"` // nil: answers are not checked
	// Template is the specification of the deployment template with its overrides; nil: there is
	// none.
	Template json.RawMessage `json:",omitempty"`
}

// ParameterRule sets top-level body parameters of the lines with its URL and Model.
type ParameterRule struct {
	URL, Model string // empty: any
	Parameters map[string]json.RawMessage
}

// AnswerRules are what a batch asks of the answers to its lines.
type AnswerRules struct {
	FinishReason []string        `json:",omitempty"` // permitted values; nil: any
	Pattern      string          `json:",omitempty"` // of RE2; empty: none
	Schema       json.RawMessage `json:",omitempty"` // JSON schema; nil: none
}
