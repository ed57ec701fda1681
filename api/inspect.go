package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// BatchDetails is what an operator sees of one batch, whoever's it is. Like a summary it holds
// nothing that its user wrote, and no answers.
type BatchDetails struct {
	BatchSummary
	Batch    store.Batch // without metadata, options, samples and messages of errors
	Retrying int
	Attempts int64
}

// FaultCount counts the faults of an input that have the same code.
type FaultCount struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
	Line  int    `json:"line"` // the first one; 0: none
	// Message is that of the first one; empty: it may repeat what the user wrote.
	Message string `json:"message"`
}

// countFaults counts faults by their codes, in the order in which these come first.
func countFaults(faults []batchfile.Fault) (counts []FaultCount) {
	for _, f := range faults {
		i := slices.IndexFunc(counts, func(c FaultCount) bool { return c.Code == f.Code })
		if i < 0 {
			c := FaultCount{Code: f.Code, Line: f.Line}
			// Messages about lines quote them; those about models and files name what is shown.
			if f.Line == 0 || f.Code == batchfile.CodeModelNotFound {
				c.Message = f.Message
			}
			i, counts = len(counts), append(counts, c)
		}
		counts[i].Count++
	}
	return counts
}

// Details returns a batch of any tenant. The error is store.ErrNotFound if it does not exist.
func (s *Server) Details(ctx context.Context, id string) (BatchDetails, error) {
	b, err := s.meta.Batch(ctx, "", id)
	if err != nil {
		return BatchDetails{}, fmt.Errorf("read batch %s: %w", id, err)
	}
	faults := countFaults(b.Errors)
	b.Errors, b.Metadata, b.OptionsJSON = nil, nil, nil
	shown, err := s.show(ctx, b)
	if err != nil {
		return BatchDetails{}, err
	}
	d := BatchDetails{BatchSummary: summarize(b, shown[0])}
	d.Faults = faults
	d.Retrying, d.Attempts = shown[0].Tidefill.Retrying, shown[0].Tidefill.Attempts
	b.Failures = nil
	d.Batch = b
	return d, nil
}

// NeedsKey reports whether requests need a key.
func (s *Server) NeedsKey() bool { return !s.keys.Load().Empty() }

// EndedLine is a line that has ended, without what was asked and answered.
type EndedLine struct {
	CustomID string `json:"custom_id"` // empty: its result is too long to be read
	Line     int    `json:"line"`      // number in the batch, from 1
	Failed   bool   `json:"failed"`
	Status   int    `json:"status"` // of the answer; 0: there was none
	Code     string `json:"code"`   // of the error, without an answer that counts
	Attempts int    `json:"attempts"`
	Tokens   int64  `json:"output_tokens"`
}

// ErrBadCursor is the error of a position that EndedLines has not returned for the batch.
var ErrBadCursor = errors.New("take the position from an earlier answer about this batch")

// recentChunks is the number of done chunks that EndedLines reads at first.
const recentChunks = 2

// EndedLines returns up to limit of the lines of a batch that have ended after a position, latest
// last, and the position for the next call. Without a position it returns some of the latest.
func (s *Server) EndedLines(
	ctx context.Context, id, after string, limit int,
) (lines []EndedLine, next string, err error) {
	chunks, err := s.meta.Chunks(ctx, id)
	if err != nil {
		return nil, "", fmt.Errorf("list chunks of batch %s: %w", id, err)
	}
	position, err := decodeCursor(after, id, len(chunks))
	if err != nil {
		return nil, "", ErrBadCursor
	}
	if after == "" {
		done := 0
		for i, chunk := range slices.Backward(chunks) {
			if chunk.Done {
				if done++; done > recentChunks {
					position[i] = drained
				}
			}
		}
	}
	for i, chunk := range chunks {
		if position[i] == drained || chunk.Epoch == 0 {
			continue
		}
		from := position[i]
		err := s.deps.Journals.Read(ctx, chunk.ChunkID,
			func(r store.Record, at store.Location) error {
				if at.Offset < from {
					return nil
				}
				position[i] = at.Offset + 1
				lines = append(lines, endedLine(r))
				if len(lines) >= 2*limit {
					lines = append(lines[:0], lines[len(lines)-limit:]...)
				}
				return nil
			})
		if err != nil {
			return nil, "", fmt.Errorf("read results of batch %s: %w", id, err)
		}
		if chunk.Done {
			position[i] = drained
		}
	}
	return lines[max(0, len(lines)-limit):], position.encode(id), nil
}

func endedLine(r store.Record) EndedLine {
	line := EndedLine{Line: int(r.Line) + 1, Failed: r.Failed, Attempts: int(r.Attempts),
		Tokens: r.Usage.OutputTokens}
	line.CustomID, line.Status, line.Code = resultHead(r.Result)
	if r.Failed && line.Status/100 == 2 { // no other failed line has a good answer
		line.Code = "check_failed"
	}
	return line
}

// resultHead reads the members of a result that precede the answer's body, as
// batchfile.AppendResult writes them.
func resultHead(result []byte) (customID string, status int, code string) {
	d := json.NewDecoder(bytes.NewReader(result))
	for member, isKey := "", false; ; {
		token, err := d.Token()
		if err != nil {
			return customID, status, code
		}
		switch v := token.(type) {
		case json.Delim:
			if isKey = true; v != '{' {
				return customID, status, code
			}
		case string:
			switch {
			case isKey:
				if member = v; member == "body" {
					return customID, status, code
				}
				isKey = false
				continue
			case member == "custom_id":
				customID = v
			case member == "code":
				return customID, status, v
			}
			isKey = true
		case float64:
			if isKey = true; member == "status_code" {
				status = int(v)
			}
		default: // null
			isKey = true
		}
	}
}
