package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// Lines is a batch input and the body of each of its lines.
type Lines struct {
	Content []byte
	Bodies  map[string]string // by custom_id
}

// NewLines returns n lines. Their bodies differ from line to line and between names, and have
// content that re-encoding would change: large integers, escapes, spaces, key order, unknown keys.
func NewLines(name, model string, n int) Lines {
	var content bytes.Buffer
	bodies := make(map[string]string, n)
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		body := fmt.Sprintf(
			`{ "z":1e400, "model":%q,"messages":[{"role":"user","content":"%s \u00e9\/ ü"}],"seed":9223372036854775807,"top_k":%d.0,"a":null}`, model, id, i)
		bodies[id] = body
		fmt.Fprintf(
			&content, `{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", id, body)
	}
	return Lines{content.Bytes(), bodies}
}

// Result is a line of an output or error file.
type Result struct {
	ID       string
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int    `json:"status_code"`
		RequestID  string `json:"request_id"`
		Body       json.RawMessage
	}
	Error *struct {
		Code, Message string
	}
}

// ParseResults reads a result file. The test fails unless all its lines are complete.
func ParseResults(t testing.TB, content []byte) []Result {
	t.Helper()
	if len(content) == 0 || content[len(content)-1] != '\n' {
		t.Fatalf("a result file of %d bytes does not end with a newline", len(content))
	}
	var results []Result
	for line := range bytes.Lines(content) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("torn result line %d: %v: %.200s", len(results)+1, err, line)
		}
		results = append(results, r)
	}
	return results
}

// Results reads output and error file of an ended batch.
func (c *Client) Results(t testing.TB, b Batch) (output, failed []Result) {
	t.Helper()
	read := func(id *string) []Result {
		if id == nil {
			return nil
		}
		content, err := c.Content(*id)
		if err != nil {
			t.Fatal(err)
		}
		return ParseResults(t, content)
	}
	return read(b.OutputFileID), read(b.ErrorFileID)
}

// faultsShown is the number of faults in a batch's files that are reported one by one.
const faultsShown = 5

// Tally counts the lines in the result files of a batch.
type Tally struct {
	Output, Failed int // lines of the files
	Lost, Doubled  int // lines of the input without a result, and with several
}

// CheckOnce fails the test unless every line of an ended batch is in its output or error file once,
// and in the output with the stub's answer to exactly the body of that line.
func (c *Client) CheckOnce(t testing.TB, b Batch, lines Lines) (sum Tally) {
	t.Helper()
	output, failed := c.Results(t, b)
	sum.Output, sum.Failed = len(output), len(failed)
	var faults []string
	seen := make(map[string]int, len(lines.Bodies))
	for _, r := range output {
		body, known := lines.Bodies[r.CustomID]
		switch {
		case !known:
			faults = append(faults, fmt.Sprintf("the output has %q, which the input has not",
				r.CustomID))
		case r.Response == nil || r.Response.StatusCode != 200:
			faults = append(faults, fmt.Sprintf("%s has no answer in the output", r.CustomID))
		case answerDigest(r.Response.Body) != Digest([]byte(body)):
			faults = append(faults, fmt.Sprintf("the answer of %s belongs to another body: %.300s",
				r.CustomID, r.Response.Body))
		}
		seen[r.CustomID]++
	}
	for _, r := range failed {
		if _, known := lines.Bodies[r.CustomID]; !known {
			faults = append(faults, fmt.Sprintf("the error file has %q, which the input has not",
				r.CustomID))
		}
		seen[r.CustomID]++
	}
	for _, fault := range faults[:min(len(faults), faultsShown)] {
		t.Errorf("batch %s: %s", b.ID, fault)
	}
	if more := len(faults) - faultsShown; more > 0 {
		t.Errorf("batch %s: %d more such faults", b.ID, more)
	}
	for id := range lines.Bodies {
		switch n := seen[id]; {
		case n == 0:
			sum.Lost++
		case n > 1:
			sum.Doubled++
		}
	}
	if sum.Lost+sum.Doubled > 0 {
		t.Errorf("batch %s, %s, %d lines: %d are in no result file, %d more than once", b.ID,
			b.Status, len(lines.Bodies), sum.Lost, sum.Doubled)
	}
	return sum
}

// CheckComplete fails the test unless a batch completed with every line once in the output and the
// stub's answer to exactly that line's body.
func (c *Client) CheckComplete(t testing.TB, b Batch, lines Lines) {
	t.Helper()
	if b.Status != "completed" {
		t.Errorf("batch %s is %s, want completed", b.ID, b.Status)
		return
	}
	sum := c.CheckOnce(t, b, lines)
	if sum.Failed > 0 {
		t.Errorf("batch %s: %d lines failed", b.ID, sum.Failed)
	}
	if n := b.RequestCounts; n.Total != len(lines.Bodies) || n.Completed != sum.Output ||
		n.Failed != sum.Failed {
		t.Errorf("batch %s: request_counts is %+v, the files have %d and %d of %d", b.ID, n,
			sum.Output, sum.Failed, len(lines.Bodies))
	}
}

// Verify fails the test unless `tidefill verify` proves the batch.
func (d *Daemon) Verify(t testing.TB, id string) {
	t.Helper()
	if out, status := d.Run("verify", id); status != 0 {
		t.Errorf("verify %s: status %d\n%s", id, status, out)
	}
}

// CheckUsed checks that the ledger has each line of all batches once, with the tokens of a [Stub].
func (c *Client) CheckUsed(t testing.TB, lines int) {
	t.Helper()
	var page struct {
		Data []struct {
			Results []struct {
				Requests int `json:"num_model_requests"`
				Input    int `json:"input_tokens"`
				Output   int `json:"output_tokens"`
			}
		}
	}
	if err := c.json("GET", fmt.Sprint("/v1/organization/usage/completions?limit=31&start_time=",
		time.Now().Add(-24*time.Hour).Unix()), "", nil, &page); err != nil {
		t.Fatal(err)
	}
	requests, input, output := 0, 0, 0
	for _, bucket := range page.Data {
		for _, used := range bucket.Results {
			requests, input, output = requests+used.Requests, input+used.Input, output+used.Output
		}
	}
	if requests != lines || input != 3*lines || output != 2*lines {
		t.Errorf("the ledger has %d requests, %d input and %d output tokens; want %d lines of 3 "+
			"and 2", requests, input, output, lines)
	}
}
