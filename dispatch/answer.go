package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// keepAnswer puts a good answer into the chunk's journal. If there is no room for it until the line
// is to end, the line comes back.
func (s *session) keepAnswer(w *sender, f *flight, line *sourceLine, id string, got openai.Answer) {
	usage := usageOf(got)
	f.InputTokens, f.OutputTokens, f.CachedTokens = int(usage.InputTokens), int(usage.OutputTokens),
		int(usage.CachedTokens)
	customID, ok := s.customID(f, line)
	if !ok {
		return
	}
	w.result = batchfile.AppendResultHead(w.result[:0], batchfile.Result{ID: id, CustomID: customID,
		Status: got.Status, RequestID: got.RequestID})
	record := store.Record{Line: line.number, Attempts: line.requests, Usage: usage,
		Result: w.result}
	var err error
	if got.Large != nil {
		err = s.appendLarge(f.chunk, record, got.Large)
	} else {
		w.rest = [...][]byte{batchfile.ResultBody(got.Body), resultTail}
		record.More = w.rest[:]
		err = s.appendSmall(f.chunk, record)
		w.rest = [2][]byte{}
	}
	if err != nil {
		f.Outcome = plan.Recalled
		return
	}
	s.recorded(line)
}

// customID reads what the line's result is to name. If the input can't be read now, the line comes
// back: nothing would record it later.
func (s *session) customID(f *flight, line *sourceLine) (id []byte, ok bool) {
	id, err := line.customID()
	if err != nil {
		s.log.Error("could not read a custom_id, the line will be sent again",
			"batch_id", f.chunk.Batch, "line", line.number, "error", err)
		f.Outcome = plan.Recalled
	}
	return id, err == nil
}

var resultTail = []byte(batchfile.ResultTail)

func usageOf(got openai.Answer) batchfile.Usage {
	if got.Large != nil {
		return got.Large.Usage
	}
	usage, _ := batchfile.ReadUsage(got.Body)
	return usage
}

// appendSmall adds a result to its chunk's journal, once those before it leave room in memory. The
// journal refuses only those whose claim is over, and that ends the session.
func (s *session) appendSmall(c *chunk, r store.Record) error {
	size := sizeOf(&r)
	if err := s.memory.results.wait(c.run.work, size); err != nil {
		return err
	}
	s.append(c, r, size)
	return nil
}

// append adds a result for which room was taken.
func (s *session) append(c *chunk, r store.Record, size int64) {
	c.volatile.Add(size)
	if err := c.journal.Append(c.run.work, r); err != nil {
		c.settled(s.memory, size)
		s.lose(fmt.Errorf("append to journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
		return
	}
	s.answered(c.run, r)
}

func sizeOf(r *store.Record) int64 {
	n := int64(len(r.Result))
	for _, more := range r.More {
		n += int64(len(more))
	}
	return n
}

// settled gives back the room of results that are durable, or lost with their journal.
func (c *chunk) settled(m *memory, bytes int64) {
	c.volatile.Add(-bytes)
	m.results.Give(bytes)
}

// appendLarge adds a result from its file, and goes on trying while the medium refuses it.
func (s *session) appendLarge(c *chunk, r store.Record, large *openai.Large) error {
	head := r.Result
	r.Result = nil
	size := int64(len(head)) + large.Size + int64(len(resultTail))
	result := func() io.Reader {
		return io.MultiReader(bytes.NewReader(head), io.NewSectionReader(large.File, 0, large.Size),
			bytes.NewReader(resultTail))
	}
	for {
		err := c.journal.AppendFrom(c.run.work, r, size, result)
		switch {
		case err == nil:
			s.answered(c.run, r)
			return nil
		case isFenced(err):
			s.lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
			return err
		case c.run.work.Err() != nil:
			return err
		}
		s.blocked(c, err)
		select {
		case <-c.run.work.Done():
			return context.Cause(c.run.work)
		case <-time.After(retryEvery):
		}
	}
}

// recorded notes that a line's result is in the journal: its input is not needed any more.
func (s *session) recorded(line *sourceLine) {
	line.recorded = true
	line.letGo(s.memory)
}

// failure is what is kept of a request that did not succeed.
type failure struct {
	customID  []byte // of the line; it may lie in the line's object
	status    int
	requestID string
	body      []byte
	taken     int64  // of the memory for answers, by body
	code      string // of an error without an answer
	message   string
}

// shortError is what is kept of an error's body when memory is short.
const shortError = 1 << 10

// describe keeps what a failed line's result should say. The body is copied: the sender's buffer
// goes on.
func (s *session) describe(outcome plan.Outcome, r openai.Answer, err error) failure {
	if err == nil && outcome != plan.Garbled {
		f := failure{status: r.Status, requestID: r.RequestID}
		switch {
		case len(r.Body) <= shortError:
			f.body = bytes.Clone(r.Body)
		case s.memory.answers.Take(int64(len(r.Body))):
			f.body, f.taken = bytes.Clone(r.Body), int64(len(r.Body))
		default:
			f.body = fmt.Appendf(nil,
				"%s… (cut by tidefill, memory being short: the answer was longer than %d bytes)",
				r.Body[:shortError], shortError)
		}
		return f
	}
	message := "the upstream's answer is not a JSON object"
	if err != nil {
		message = err.Error()
	}
	code := failureCodes[outcome]
	switch {
	case errors.Is(err, batchfile.ErrDamaged):
		code = codeDamaged
		message += "; upload the file again"
	case code == "":
		code = "not_sent"
	}
	if err == nil && len(r.Body) > 0 {
		message = fmt.Sprintf("%s; it was %d bytes with status %d, beginning %q", message,
			len(r.Body), r.Status, r.Body[:min(len(r.Body), 200)])
	}
	return failure{code: code, message: message}
}

// codeDamaged is for input that the medium has changed since its upload.
const codeDamaged = "input_damaged"

var failureCodes = map[plan.Outcome]string{
	plan.Garbled: "invalid_upstream_answer", plan.TimedOut: "upstream_timeout",
	plan.Died: "upstream_connection_lost", plan.Unreachable: "upstream_unreachable",
}

// record writes a failed line down. The loop calls it, which must not wait: while there is no room
// for results, no line starts.
func (s *session) record(f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	a := &f.answer
	record := store.Record{Line: line.number, Failed: true, Attempts: line.requests,
		Result: batchfile.AppendResult(nil, batchfile.Result{
			ID: resultID(f.chunk.Batch, line.number), CustomID: a.customID,
			Status: a.status, RequestID: a.requestID, Body: a.body, ErrorCode: a.code,
			ErrorMessage: a.message,
		})}
	size := sizeOf(&record)
	s.memory.results.force(size)
	s.append(f.chunk, record, size)
	s.recorded(line)
}
