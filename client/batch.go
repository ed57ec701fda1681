package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Batch is a batch object of the API. Times are Unix seconds; 0: not yet.
type Batch struct {
	ID               string            `json:"id"`
	Endpoint         string            `json:"endpoint"`
	Model            string            `json:"model"`
	InputFileID      string            `json:"input_file_id"`
	CompletionWindow string            `json:"completion_window"`
	Status           string            `json:"status"`
	OutputFileID     string            `json:"output_file_id"`
	ErrorFileID      string            `json:"error_file_id"`
	CreatedAt        int64             `json:"created_at"`
	InProgressAt     int64             `json:"in_progress_at"`
	ExpiresAt        int64             `json:"expires_at"`
	CompletedAt      int64             `json:"completed_at"`
	FailedAt         int64             `json:"failed_at"`
	ExpiredAt        int64             `json:"expired_at"`
	CancelledAt      int64             `json:"cancelled_at"`
	Counts           Counts            `json:"request_counts"`
	Metadata         map[string]string `json:"metadata"`
	Errors           struct {
		Data []InputError `json:"data"`
	} `json:"errors"`
	Usage    *Usage     `json:"usage"` // nil: unknown
	Tidefill Extensions `json:"tidefill"`
	// Resolved is what its template and profile stand for; nil: it has neither.
	Resolved *Resolved `json:"_aibrix"`

	// Raw is the object as it was received.
	Raw json.RawMessage `json:"-"`
}

// Resolved is what the template and the profile of a batch stand for.
type Resolved struct {
	Template *struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"resolved_template"`
	Profile  string   `json:"resolved_profile"` // empty: none
	Mode     string   `json:"deployment_mode"`
	Warnings []string `json:"warnings"`
}

// Extensions holds the fields of a batch that OpenAI's API does not have.
type Extensions struct {
	Tenant string  `json:"tenant"`
	Paused bool    `json:"paused"`
	Rate   float64 `json:"rate"` // lines per second, now
	ETA    int64   `json:"eta"`  // Unix seconds; 0: unknown
	Forecast
	Attempts      int64  `json:"attempts"` // requests sent, those of retries included
	InFlight      int    `json:"in_flight"`
	Retrying      int    `json:"retrying"`
	NotRun        int    `json:"not_run"`         // of Counts.Failed: the batch ended first
	Waiting       string `json:"waiting"`         // why no more lines start now; empty: they do
	Reason        string `json:"reason"`          // why the batch ended early
	StartByMissed bool   `json:"start_by_missed"` // no line was in flight by start_by
	// RankError is why the ordering policy can't rank the batch, which goes last; empty: it can.
	RankError string `json:"rank_error"`
	// Failures are the most frequent causes of failed lines.
	Failures     []Failure `json:"failures"`
	InputFileIDs []string  `json:"input_file_ids"`
	InputURL     string    `json:"input_url"` // that was imported as the inputs; empty: none was
	// Output says whether the results are in the bucket that the request names; nil: it names none.
	Output *struct {
		URL       string `json:"url"`
		Delivered bool   `json:"delivered"`
		Error     string `json:"error"` // why they never will be
	} `json:"output"`
	RetryOf string `json:"retry_of"` // the batch whose failed lines it has; empty: none
	Models  []struct {
		Model string `json:"model"`
		Lines int    `json:"lines"`
	} `json:"models"`
	Outputs []ResultFiles `json:"outputs"`
	// Options are those of the request that are shown.
	Options struct {
		Check *RequestCheck `json:"check"` // nil: none, or of a listed batch
	} `json:"options"`
}

// Failure is a cause for which lines have failed.
type Failure struct {
	Count  int    `json:"count"`
	Status int    `json:"status"` // of the HTTP answer; 0: there was none
	Code   string `json:"code"`
	Sample string `json:"sample"` // the beginning of one of the answers, or the error
	Runner string `json:"runner"` // empty: unknown
}

// String says the cause in a few words: the status or the code, a sample and the runner.
func (f Failure) String() string {
	text := f.Code
	if f.Status > 0 {
		text = strings.TrimSpace(fmt.Sprint(f.Status, " ", f.Code))
	}
	if f.Sample != "" {
		text += fmt.Sprintf(" %q", f.Sample)
	}
	if f.Runner != "" {
		text += " from " + f.Runner
	}
	return text
}

// Forecast says whether a batch will meet its deadline. Times are Unix seconds.
type Forecast struct {
	// Verdict is ok, at_risk or infeasible; empty: unknown.
	Verdict string `json:"verdict"`
	// PredictedFinish is when the batch will be done, with the replicas that are planned. 0: too
	// late to be planned, or unknown.
	PredictedFinish int64 `json:"predicted_finish"`
	// PredictedBand holds the earliest and the latest probable finish. Nil: unknown.
	PredictedBand []int64 `json:"predicted_band"`
	// WithOneMore is PredictedFinish if one more replica were started now. 0: no earlier.
	WithOneMore int64 `json:"predicted_finish_with_one_more"`
}

// ResultFiles is a pair of result files. An empty id means that the file has no lines and does not
// exist.
type ResultFiles struct {
	InputFileID  string `json:"input_file_id"` // empty: the results of all inputs
	OutputFileID string `json:"output_file_id"`
	ErrorFileID  string `json:"error_file_id"`
}

// Counts are numbers of lines.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// Ran returns the counts of the batch, with those lines as failed only that got an answer.
func (b Batch) Ran() Counts {
	c := b.Counts
	c.Failed -= b.Tidefill.NotRun
	return c
}

// Done returns the number of lines that have a result.
func (c Counts) Done() int { return c.Completed + c.Failed }

// Usage holds the tokens of all answers.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"`
}

// InputError is one error in an input file.
type InputError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"`
	Line    int    `json:"line"` // 0: the error concerns the file, not one line
}

func (e InputError) String() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Code, e.Message)
}

// Ended reports whether the batch is in a final state.
func (b Batch) Ended() bool {
	switch b.Status {
	case "completed", "failed", "expired", "cancelled":
		return true
	}
	return false
}

// EndedAt returns when the batch ended, in Unix seconds; 0: it has not.
func (b Batch) EndedAt() int64 {
	return max(b.CompletedAt, b.FailedAt, b.ExpiredAt, b.CancelledAt)
}

// Inputs returns the ids of the input files, in order.
func (b Batch) Inputs() []string {
	if len(b.Tidefill.InputFileIDs) > 0 {
		return b.Tidefill.InputFileIDs
	}
	return []string{b.InputFileID}
}

// Results returns the result files that exist.
func (b Batch) Results() []ResultFiles {
	if len(b.Tidefill.Outputs) > 0 {
		return b.Tidefill.Outputs
	}
	if b.OutputFileID == "" && b.ErrorFileID == "" {
		return nil
	}
	return []ResultFiles{{OutputFileID: b.OutputFileID, ErrorFileID: b.ErrorFileID}}
}

// UnmarshalJSON implements json.Unmarshaler. It also sets Raw.
func (b *Batch) UnmarshalJSON(raw []byte) error {
	type plain Batch
	if err := json.Unmarshal(raw, (*plain)(b)); err != nil {
		return err
	}
	b.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// BatchRequest is the body of a request to create a batch.
type BatchRequest struct {
	// InputFileID is the input; empty: those of RequestExtensions.
	InputFileID        string            `json:"input_file_id,omitempty"`
	Endpoint           string            `json:"endpoint"`
	CompletionWindow   string            `json:"completion_window"`
	Metadata           map[string]string `json:"metadata,omitempty"`
	OutputExpiresAfter *FileExpiry       `json:"output_expires_after,omitempty"`
	// ServiceTier selects the profile that has it as its alias.
	ServiceTier string             `json:"service_tier,omitempty"`
	Tidefill    *RequestExtensions `json:"tidefill,omitempty"`
}

// CreateBatch creates a batch.
func (c *Client) CreateBatch(ctx context.Context, r BatchRequest) (Batch, error) {
	var b Batch
	if err := c.post(ctx, "/v1/batches", r, &b); err != nil {
		return Batch{}, fmt.Errorf("create batch: %w", err)
	}
	return b, nil
}

// Batch returns one batch.
func (c *Client) Batch(ctx context.Context, id string) (Batch, error) {
	var b Batch
	if err := c.call(ctx, request{method: http.MethodGet, path: batchPath(id)}, &b); err != nil {
		return Batch{}, fmt.Errorf("get batch %s: %w", id, err)
	}
	return b, nil
}

// Cancel stops a batch and ends its lines in flight. Finished lines keep their results.
func (c *Client) Cancel(ctx context.Context, id string) (Batch, error) {
	return c.act(ctx, id, "cancel")
}

// CancelGently stops a batch as Cancel does, but lets its lines in flight finish, within the time
// that the daemon allows for that. Cancel ends them after all.
func (c *Client) CancelGently(ctx context.Context, id string) (Batch, error) {
	var body struct {
		Tidefill struct {
			FinishInFlight bool `json:"finish_in_flight"`
		} `json:"tidefill"`
	}
	body.Tidefill.FinishInFlight = true
	var b Batch
	if err := c.post(ctx, batchPath(id)+"/cancel", body, &b); err != nil {
		return Batch{}, fmt.Errorf("cancel batch %s: %w", id, err)
	}
	return b, nil
}

// SetPriority changes the priority of a batch that has not ended.
func (c *Client) SetPriority(ctx context.Context, id string, priority int) (Batch, error) {
	var body struct {
		Tidefill struct {
			Priority int `json:"priority"`
		} `json:"tidefill"`
	}
	body.Tidefill.Priority = priority
	var b Batch
	if err := c.post(ctx, batchPath(id), body, &b); err != nil {
		return Batch{}, fmt.Errorf("change batch %s: %w", id, err)
	}
	return b, nil
}

// Pause starts no more lines of a batch until Resume.
func (c *Client) Pause(ctx context.Context, id string) (Batch, error) {
	return c.act(ctx, id, "pause")
}

// Resume continues a paused batch.
func (c *Client) Resume(ctx context.Context, id string) (Batch, error) {
	return c.act(ctx, id, "resume")
}

// Retry creates a new batch of the failed lines of an ended batch, and returns the new one.
func (c *Client) Retry(ctx context.Context, id string) (Batch, error) {
	return c.act(ctx, id, "retry")
}

func (c *Client) act(ctx context.Context, id, action string) (Batch, error) {
	var b Batch
	if err := c.call(ctx, request{method: http.MethodPost, path: batchPath(id) + "/" + action,
		idempotent: true}, &b); err != nil {
		return Batch{}, fmt.Errorf("%s batch %s: %w", action, id, err)
	}
	return b, nil
}

// DeleteBatch deletes an ended batch and returns the API's answer.
func (c *Client) DeleteBatch(ctx context.Context, id string) (json.RawMessage, error) {
	var answer json.RawMessage
	if err := c.call(ctx, request{method: http.MethodDelete, path: batchPath(id)},
		&answer); err != nil {
		return nil, fmt.Errorf("delete batch %s: %w", id, err)
	}
	return answer, nil
}

func batchPath(id string) string { return "/v1/batches/" + url.PathEscape(id) }
