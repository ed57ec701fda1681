package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// Lines is a batch input and the body of each of its lines.
type Lines struct {
	Content []byte
	Bodies  map[string]string // by custom_id
}

// NewLines makes n lines. Their bodies differ from line to line and between names, and hold what re-encoding would spoil: large
// integers, escapes, spaces, key order, unknown keys.
func NewLines(name, model string, n int) Lines {
	var content bytes.Buffer
	bodies := make(map[string]string, n)
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		body := fmt.Sprintf(`{ "z":1e400, "model":%q,"messages":[{"role":"user","content":"%s \u00e9\/ ü"}],"seed":9223372036854775807,"top_k":%d.0,"a":null}`, model, id, i)
		bodies[id] = body
		fmt.Fprintf(&content, `{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", id, body)
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

// ParseResults reads a result file, which must end with a newline and hold whole lines.
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

// CheckComplete fails the test unless a batch completed with every line once in the output and the stub's answer to exactly
// that line's body.
func (c *Client) CheckComplete(t testing.TB, b Batch, lines Lines) {
	t.Helper()
	if b.Status != "completed" {
		t.Errorf("batch %s is %s, want completed", b.ID, b.Status)
		return
	}
	output, failed := c.Results(t, b)
	for _, r := range failed {
		t.Errorf("batch %s: line %s failed: %+v %+v", b.ID, r.CustomID, r.Error, r.Response)
	}
	seen := make(map[string]bool, len(output))
	for _, r := range output {
		body, known := lines.Bodies[r.CustomID]
		switch {
		case !known:
			t.Errorf("batch %s: the output has %q, which the input has not", b.ID, r.CustomID)
		case seen[r.CustomID]:
			t.Errorf("batch %s: %s stands twice in the output", b.ID, r.CustomID)
		case r.Response == nil || r.Response.StatusCode != 200:
			t.Errorf("batch %s: %s has no answer in the output", b.ID, r.CustomID)
		case answerDigest(r.Response.Body) != Digest([]byte(body)):
			t.Errorf("batch %s: the answer of %s belongs to another body: %.300s", b.ID, r.CustomID, r.Response.Body)
		}
		seen[r.CustomID] = true
	}
	if len(seen) != len(lines.Bodies) {
		t.Errorf("batch %s: the output has %d lines, the input %d", b.ID, len(seen), len(lines.Bodies))
	}
	if b.RequestCounts.Total != len(lines.Bodies) || b.RequestCounts.Completed != len(output) || b.RequestCounts.Failed != len(failed) {
		t.Errorf("batch %s: request_counts is %+v, the files have %d and %d of %d", b.ID, b.RequestCounts, len(output), len(failed), len(lines.Bodies))
	}
}

// Verify fails the test unless `tidefill verify` proves the batch.
func (d *Daemon) Verify(t testing.TB, id string) {
	t.Helper()
	if out, status := d.Run("verify", id); status != 0 {
		t.Errorf("verify %s: status %d\n%s", id, status, out)
	}
}
