package dispatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/batchfile"
)

// job is a line on its way to a sender.
type job struct {
	plan.Start
	chunk *chunk
}

// senders are goroutines that post lines. There are as many as lines were ever under way at once, less those that had
// nothing to do for a while: a fresh goroutine for every line would grow its stack anew each time.
type senders struct {
	send   func(j *job, buf *buffers)
	queue  chan *job
	idle   atomic.Int64
	start  sync.Once
	ending chan struct{}
	all    sync.WaitGroup
}

// buffers are what a sender reuses from line to line.
type buffers struct{ answer, result []byte }

const (
	senderIdle    = 10 * time.Second
	largestBuffer = 256 << 10 // larger ones are not kept from line to line
)

func (s *senders) init() {
	s.queue = make(chan *job, 1024)
	s.ending = make(chan struct{})
}

// hand gives a line to a sender. Only the loop calls it.
func (s *senders) hand(j *job) {
	s.start.Do(s.init)
	if s.idle.Add(-1) < 0 {
		s.idle.Add(1)
		s.all.Go(func() { s.run(j) })
		return
	}
	s.queue <- j
}

func (s *senders) run(j *job) {
	var buf buffers
	timer := time.NewTimer(senderIdle)
	defer timer.Stop()
	for {
		s.send(j, &buf)
		buf.trim()
		s.idle.Add(1)
		timer.Reset(senderIdle)
		select {
		case j = <-s.queue:
		case <-s.ending:
			return
		case <-timer.C:
			// Leave only if no line is promised to an idle sender.
			if s.idle.Add(-1) >= 0 {
				return
			}
			s.idle.Add(1)
			j = <-s.queue
		}
	}
}

func (s *senders) stop() {
	s.start.Do(s.init)
	close(s.ending)
	s.all.Wait()
}

func (b *buffers) trim() {
	if cap(b.answer) > largestBuffer {
		b.answer = nil
	}
	if cap(b.result) > largestBuffer {
		b.result = nil
	}
}

// answer is what is kept of a request that did not succeed.
type answer struct {
	status    int
	requestID string
	body      []byte
	code      string // of an error without an answer
	message   string
}

// send posts one line and tells the loop how it went. A good answer goes into the journal on the way.
func (s *session) send(j *job, buf *buffers) {
	line := &j.chunk.lines[j.Slot]
	r := j.chunk.run
	begun := time.Now()
	f := &finishedLine{chunk: j.chunk}
	f.Start = j.Start
	reply, err := s.post(r, line, j, buf)
	f.Latency = time.Since(begun)
	if cap(reply.Body) > cap(buf.answer) {
		buf.answer = reply.Body
	}
	f.Outcome, f.Status, f.RetryAfter = reply.outcome, reply.Status, reply.RetryAfter
	if f.Outcome == plan.Succeeded {
		usage, _ := batchfile.ReadUsage(reply.Body)
		f.InputTokens, f.OutputTokens = int(usage.InputTokens), int(usage.OutputTokens)
		record := store.Record{Line: line.number, Attempts: uint16(min(j.Attempt, 1<<16-1)), Usage: usage}
		buf.result = s.append(buf.result[:0], j.chunk, line, record, answer{status: reply.Status, requestID: reply.RequestID, body: reply.Body})
	} else {
		f.answer = describe(reply, err)
	}
	s.metrics.finished(j.Runner, f.Outcome, f.Latency)
	s.inbox.put(f)
}

type reply struct {
	openai.Answer
	outcome plan.Outcome
}

func (s *session) post(r *run, line *sourceLine, j *job, buf *buffers) (reply, error) {
	ctx, cancel := context.WithTimeout(r.work, s.cfg.RequestTimeout)
	defer cancel()
	r.attempts.Add(1)
	var change edits
	if len(r.edits) > 0 {
		change = r.edits[editsKey{line.url(), line.model()}]
	}
	size, open, err := line.body(change)
	if err != nil {
		return reply{outcome: plan.Recalled}, err // the input can't be read now; no runner's fault
	}
	a, err := s.upstreams[j.Runner].client.Send(ctx, openai.Request{
		Path: line.url(), NewBody: open, Size: size, ID: resultID(r.id, line.number), Tenant: r.tenant,
	}, buf.answer)
	return reply{Answer: a, outcome: openai.Classify(ctx, a, err)}, err
}

// describe keeps what a failed line's result should say. The body is copied: the sender's buffer goes on.
func describe(r reply, err error) answer {
	if err == nil && r.outcome != plan.Garbled {
		return answer{status: r.Status, requestID: r.RequestID, body: append([]byte(nil), r.Body...)}
	}
	message := "the upstream's answer is not a JSON object"
	if err != nil {
		message = err.Error()
	}
	codes := map[plan.Outcome]string{
		plan.Garbled: "invalid_upstream_answer", plan.TimedOut: "upstream_timeout",
		plan.Died: "upstream_connection_lost", plan.Unreachable: "upstream_unreachable",
	}
	code := codes[r.outcome]
	if code == "" {
		code = "not_sent"
	}
	if err == nil && len(r.Body) > 0 {
		message = fmt.Sprintf("%s; it was %d bytes with status %d, beginning %q", message, len(r.Body), r.Status, r.Body[:min(len(r.Body), 200)])
	}
	return answer{code: code, message: message}
}

// record writes a failed line down.
func (s *session) record(c *chunk, slot, attempt int, a answer) {
	line := &c.lines[slot]
	rec := store.Record{Line: line.number, Failed: true, Attempts: uint16(min(attempt, 1<<16-1))}
	s.append(nil, c, line, rec, a)
}

// append adds a line's result to its chunk's journal. A journal refuses only those whose claim is over.
func (s *session) append(buf []byte, c *chunk, line *sourceLine, rec store.Record, a answer) []byte {
	customID, err := line.customID()
	if err != nil {
		s.log.Error("could not read a custom_id, the line will be sent again", "batch_id", c.Batch, "line", line.number, "error", err)
		return buf
	}
	buf = batchfile.AppendResult(buf, batchfile.Result{
		ID: resultID(c.Batch, line.number), CustomID: customID,
		Status: a.status, RequestID: a.requestID, Body: a.body, ErrorCode: a.code, ErrorMessage: a.message,
	})
	rec.Result = buf
	if err := c.journal.Append(rec); err != nil {
		s.lose(fmt.Errorf("append to journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
		return buf
	}
	line.object = nil
	return buf
}
