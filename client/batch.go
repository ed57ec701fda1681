package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Batch is a batch as the API shows it.
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
		Data []Fault `json:"data"`
	} `json:"errors"`
	Usage    *Usage     `json:"usage"`
	Tidefill Extensions `json:"tidefill"`

	// Raw is the object as it came.
	Raw json.RawMessage `json:"-"`
}

// Extensions is what a batch shows beyond OpenAI's API.
type Extensions struct {
	Paused       bool     `json:"paused"`
	Rate         float64  `json:"rate"` // lines per second, now
	ETA          int64    `json:"eta"`  // Unix seconds; 0: unknown
	InFlight     int      `json:"in_flight"`
	Retrying     int      `json:"retrying"`
	Waiting      string   `json:"waiting"` // why nothing more is started now
	Reason       string   `json:"reason"`  // why the batch was stopped early
	InputFileIDs []string `json:"input_file_ids"`
	Models       []struct {
		Model string `json:"model"`
		Lines int    `json:"lines"`
	} `json:"models"`
	Outputs []Output `json:"outputs"`
}

// Output is a pair of result files; an id is empty where there was nothing to write.
type Output struct {
	InputFileID  string `json:"input_file_id"` // empty: all inputs joined
	OutputFileID string `json:"output_file_id"`
	ErrorFileID  string `json:"error_file_id"`
}

// Results lists the result files that stand.
func (b Batch) Results() []Output {
	if len(b.Tidefill.Outputs) > 0 {
		return b.Tidefill.Outputs
	}
	if b.OutputFileID == "" && b.ErrorFileID == "" {
		return nil
	}
	return []Output{{OutputFileID: b.OutputFileID, ErrorFileID: b.ErrorFileID}}
}

// Inputs lists the input files, in order.
func (b Batch) Inputs() []string {
	if len(b.Tidefill.InputFileIDs) > 0 {
		return b.Tidefill.InputFileIDs
	}
	return []string{b.InputFileID}
}

// Counts are lines.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// Done counts the lines that have a result.
func (c Counts) Done() int { return c.Completed + c.Failed }

// Fault is one thing wrong with an input file.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"`
	Line    int    `json:"line"` // 0: the file as a whole
}

func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Code, f.Message)
}

// Usage sums the tokens of all answers.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"`
}

// Ended reports whether the batch never changes again.
func (b Batch) Ended() bool {
	switch b.Status {
	case "completed", "failed", "expired", "cancelled":
		return true
	}
	return false
}

// EndedAt is when it ended, in Unix seconds; 0 before.
func (b Batch) EndedAt() int64 {
	return max(b.CompletedAt, b.FailedAt, b.ExpiredAt, b.CancelledAt)
}

func (b *Batch) UnmarshalJSON(raw []byte) error {
	type plain Batch
	if err := json.Unmarshal(raw, (*plain)(b)); err != nil {
		return err
	}
	b.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// NewBatch is a create request.
type NewBatch struct {
	InputFileID      string            `json:"input_file_id"`
	Endpoint         string            `json:"endpoint"`
	CompletionWindow string            `json:"completion_window"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	Tidefill         *NewExtensions    `json:"tidefill,omitempty"`
}

// NewExtensions are what a create request asks beyond OpenAI's API.
type NewExtensions struct {
	Priority int    `json:"priority,omitempty"`
	Deadline string `json:"deadline,omitempty"`
}

// CreateBatch creates a batch.
func (c *Client) CreateBatch(ctx context.Context, n NewBatch) (Batch, error) {
	var b Batch
	if err := c.post(ctx, "/v1/batches", n, &b); err != nil {
		return Batch{}, fmt.Errorf("create batch: %w", err)
	}
	return b, nil
}

// Batch returns one batch.
func (c *Client) Batch(ctx context.Context, id string) (Batch, error) {
	var b Batch
	if err := c.ask(ctx, request{method: http.MethodGet, path: batchPath(id)}, &b); err != nil {
		return Batch{}, fmt.Errorf("get batch %s: %w", id, err)
	}
	return b, nil
}

// Act asks for one of a batch's actions: cancel, pause, resume or retry. It returns the batch, or
// for retry the new one.
func (c *Client) Act(ctx context.Context, id, action string) (Batch, error) {
	var b Batch
	if err := c.ask(ctx, request{method: http.MethodPost, path: batchPath(id) + "/" + action,
		once: true}, &b); err != nil {
		return Batch{}, fmt.Errorf("%s batch %s: %w", action, id, err)
	}
	return b, nil
}

// DeleteBatch deletes an ended batch and returns the API's answer.
func (c *Client) DeleteBatch(ctx context.Context, id string) (json.RawMessage, error) {
	var answer json.RawMessage
	if err := c.ask(ctx, request{method: http.MethodDelete, path: batchPath(id)},
		&answer); err != nil {
		return nil, fmt.Errorf("delete batch %s: %w", id, err)
	}
	return answer, nil
}

// Page is one page of a listing.
type Page[T any] struct {
	Data []T  `json:"data"`
	More bool `json:"has_more"`
}

// Batches returns a page of batches; the query is the API's.
func (c *Client) Batches(ctx context.Context, query url.Values) (Page[Batch], error) {
	var page Page[Batch]
	if err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/batches", query: query},
		&page); err != nil {
		return Page[Batch]{}, fmt.Errorf("list batches: %w", err)
	}
	return page, nil
}

func batchPath(id string) string { return "/v1/batches/" + url.PathEscape(id) }
