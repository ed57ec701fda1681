package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Preview is what would become of a batch if it were created now. Nil numbers are unknown.
type Preview struct {
	CompletionWindow string `json:"completion_window"`
	ExpiresAt        int64  `json:"expires_at"` // Unix seconds; 0: no deadline
	Errors           struct {
		Data []InputError `json:"data"`
	} `json:"errors"`
	Accepted bool `json:"accepted"` // CreateBatch would create a batch that runs
	Forecast
	Reason   string         `json:"reason"` // why Verdict is empty
	Lines    int            `json:"lines"`
	Work     *float64       `json:"work_seconds"` // engine time
	GPUHours *float64       `json:"gpu_hours"`
	Models   []PreviewModel `json:"models"`
	Pools    []struct {
		Pool     string  `json:"pool"`
		Replicas int     `json:"replicas"` // at most at one time
		GPUHours float64 `json:"gpu_hours"`
	} `json:"pools"`
	// Nearest is the earliest deadline that can be met. Nil: none, or unknown.
	Nearest *struct {
		Deadline         int64  `json:"deadline"`
		CompletionWindow string `json:"completion_window"` // empty: longer than is allowed
	} `json:"nearest"`
	Windows []struct {
		CompletionWindow string `json:"completion_window"`
		Verdict          string `json:"verdict"`
		Feasible         bool   `json:"feasible"`
	} `json:"windows"`
	// Affected describes the batches that would get a worse verdict.
	Affected struct {
		Own     int `json:"own"`
		Others  int `json:"others"` // of other tenants
		Batches []struct {
			ID            string `json:"id"`
			VerdictBefore string `json:"verdict_before"`
			Forecast
		} `json:"batches"` // the first of the own ones
	} `json:"affected"`

	// Raw is the answer as it was received.
	Raw json.RawMessage `json:"-"`
}

// PreviewModel is the expected work for a model.
type PreviewModel struct {
	Model        string   `json:"model"`
	Lines        int      `json:"lines"`
	InputTokens  *int64   `json:"input_tokens"`
	OutputTokens *int64   `json:"output_tokens"`
	Work         *float64 `json:"work_seconds"`
	KnownAnswers *int     `json:"known_answers"` // that the output is estimated from
}

// PreviewBatch returns what would become of a batch. It creates none. The errors are those of
// CreateBatch.
func (c *Client) PreviewBatch(ctx context.Context, r BatchRequest) (p Preview, err error) {
	if p, err = c.preview(ctx, r); err != nil {
		return p, fmt.Errorf("preview batch: %w", err)
	}
	return p, nil
}

func (c *Client) preview(ctx context.Context, r BatchRequest) (p Preview, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return p, err
	}
	var raw json.RawMessage
	if err = c.call(ctx, request{
		method: http.MethodPost, path: "/v1/batches", query: url.Values{"dry_run": {"true"}},
		body: bytes.NewReader(body), length: int64(len(body)), contentType: "application/json",
	}, &raw); err == nil {
		err = json.Unmarshal(raw, &p)
	}
	p.Raw = raw
	return p, err
}

// CheckOptions returns the error that CreateBatch would return for a request whose n inputs are not
// uploaded yet, as far as the API finds faults without them. It creates nothing.
func (c *Client) CheckOptions(ctx context.Context, r BatchRequest, n int) error {
	// The API looks inputs up after it has checked everything else.
	const param, several = "input_file_id", "tidefill.input_file_ids"
	r.InputFileID = "file-unsent"
	if n > 1 {
		x := RequestExtensions{}
		if r.Tidefill != nil {
			x = *r.Tidefill
		}
		for i := range n {
			x.InputFileIDs = append(x.InputFileIDs, fmt.Sprintf("file-unsent-%d", i))
		}
		r.InputFileID, r.Tidefill = "", &x
	}
	_, err := c.preview(ctx, r)
	if refused := (*Error)(nil); errors.As(err, &refused) && (refused.Param == param ||
		strings.HasPrefix(refused.Param, several)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create batch: %w", err)
	}
	return nil
}
