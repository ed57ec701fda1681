package client

import (
	"encoding/json"
	"fmt"
	"strings"
)

// FileExpiry sets when result files expire.
type FileExpiry struct {
	Anchor  string `json:"anchor"` // created_at
	Seconds int64  `json:"seconds"`
}

// RequestExtensions holds the fields of a BatchRequest that OpenAI's API does not have. Zero values
// are not sent. Times are RFC 3339, or durations from now.
type RequestExtensions struct {
	// Deadline is when the batch must be done.
	Deadline string `json:"deadline,omitempty"`
	// StartBy is when the first line must be in flight.
	StartBy string `json:"start_by,omitempty"`
	// Priority orders the tenant's own batches where the scheduling policy uses it; higher first.
	Priority int `json:"priority,omitempty"`
	// MaxFailedLines is the number of lines that may fail before the batch is stopped. Nil: no
	// limit.
	MaxFailedLines *int `json:"max_failed_lines,omitempty"`
	// MaxFailedRatio is the share of the finished lines that may have failed.
	MaxFailedRatio float64 `json:"max_failed_ratio,omitempty"`
	// MaxTotalTokens limits the tokens that the answers use.
	MaxTotalTokens int64         `json:"max_total_tokens,omitempty"`
	Retry          *RequestRetry `json:"retry,omitempty"`
	// Defaults and Overrides are objects of parameters, or of rules for some of the lines.
	Defaults  json.RawMessage `json:"defaults,omitempty"`
	Overrides json.RawMessage `json:"overrides,omitempty"`
	// InputFileIDs are several inputs, instead of InputFileID.
	InputFileIDs []string `json:"input_file_ids,omitempty"`
	// InputURL names an object of a bucket, s3://BUCKET/NAME, or all below it if it ends in a
	// slash. The daemon imports them, instead of InputFileID.
	InputURL string `json:"input_url,omitempty"`
	// CSV says how rows become lines, of an InputURL whose objects are CSV files.
	CSV *RequestCSV `json:"csv,omitempty"`
	// OutputURL, s3://BUCKET/NAME/, is where the daemon writes the result files as well.
	OutputURL string `json:"output_url,omitempty"`
	// Outputs is joined or per_input.
	Outputs string         `json:"outputs,omitempty"`
	Canary  *RequestCanary `json:"canary,omitempty"`
	Check   *RequestCheck  `json:"check,omitempty"`
	// GroupBy is prefix, model or none.
	GroupBy string `json:"group_by,omitempty"`
	// MaxConcurrency limits the lines in flight.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// Admission is advisory or strict, which refuses a batch that can't meet its deadline.
	Admission string `json:"admission,omitempty"`
	// Registry names a deployment template and a profile.
	Registry *RegistryReference `json:"registry,omitempty"`
}

// RegistryReference names a deployment template and a profile. Nil: none.
type RegistryReference struct {
	Template *TemplateReference `json:"model_template,omitempty"`
	Profile  *ProfileReference  `json:"profile,omitempty"`
}

// TemplateReference names a template; without a version it is the active one.
type TemplateReference struct {
	Name      string             `json:"name"`
	Version   string             `json:"version,omitempty"`
	Overrides *TemplateOverrides `json:"overrides,omitempty"`
}

// TemplateOverrides are other settings of a template.
type TemplateOverrides struct {
	EngineArgs json.RawMessage `json:"engine_args"`
}

// ProfileReference names a profile.
type ProfileReference struct {
	Name      string            `json:"name"`
	Overrides *ProfileOverrides `json:"overrides,omitempty"`
}

// ProfileOverrides are other settings of a profile.
type ProfileOverrides struct {
	Scheduling json.RawMessage `json:"scheduling"`
}

// RequestCSV says how a row of a CSV file becomes a line.
type RequestCSV struct {
	// CustomID is the column of the custom_id. Empty: it is row-N.
	CustomID string `json:"custom_id,omitempty"`
	// Body is a JSON object in whose strings {{column}} stands for a cell.
	Body json.RawMessage `json:"body"`
}

// RequestRetry sets which lines are sent again.
type RequestRetry struct {
	Attempts int   `json:"attempts,omitempty"` // per line, the first included; 0: the default
	On       []int `json:"on,omitempty"`       // HTTP statuses; none: the default
}

// RequestCanary sets lines that run first, and decide whether the others do.
type RequestCanary struct {
	Lines int `json:"lines"`
	// MaxFailedRatio is the share of them that may fail. Nil: the default.
	MaxFailedRatio *float64 `json:"max_failed_ratio,omitempty"`
}

// RequestCheck sets what the answers to lines must be. An answer that fails is asked for again.
type RequestCheck struct {
	// FinishReason lists the values that every choice may have.
	FinishReason []string `json:"finish_reason,omitempty"`
	// Pattern is a regular expression (RE2) that the text of every choice matches.
	Pattern string `json:"pattern,omitempty"`
	// JSONSchema is a schema to which the text of every choice conforms.
	JSONSchema json.RawMessage `json:"json_schema,omitempty"`
	// Attempts limits the answers to a line, the first included; 0: the default.
	Attempts int `json:"attempts,omitempty"`
}

// String names the rules in a few words.
func (c RequestCheck) String() string {
	var rules []string
	if len(c.FinishReason) > 0 {
		rules = append(rules, "finish_reason "+strings.Join(c.FinishReason, " or "))
	}
	if c.Pattern != "" {
		rules = append(rules, "pattern "+c.Pattern)
	}
	if len(c.JSONSchema) > 0 {
		rules = append(rules, "json_schema")
	}
	if c.Attempts > 0 {
		rules = append(rules, fmt.Sprintf("attempts %d", c.Attempts))
	}
	return strings.Join(rules, ", ")
}
