package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/batchfile"
)

// flight is a line under way: from the loop to a sender and back, with what the sender found. The loop uses it again for
// another line afterwards.
type flight struct {
	plan.Finished
	chunk  *chunk
	answer answer
	reins  reins
}

// senders are goroutines that post lines. There are as many as lines were ever under way at once, less those that had
// nothing to do for a while: a fresh goroutine for every line would grow its stack anew each time.
type senders struct {
	send   func(w *sender, f *flight)
	queue  chan *flight
	idle   atomic.Int64
	start  sync.Once
	ending chan struct{}
	all    sync.WaitGroup
}

// sender is what one goroutine reuses from line to line.
type sender struct {
	scratch openai.Scratch
	result  []byte
	bound   bound
}

const (
	senderIdle    = 10 * time.Second
	largestBuffer = 256 << 10 // larger ones are not kept from line to line
)

func (s *senders) init() {
	s.queue = make(chan *flight, 1024)
	s.ending = make(chan struct{})
}

// hand gives a line to a sender. Only the loop calls it.
func (s *senders) hand(f *flight) {
	s.start.Do(s.init)
	if s.idle.Add(-1) < 0 {
		s.idle.Add(1)
		s.all.Go(func() { s.run(f) })
		return
	}
	s.queue <- f
}

func (s *senders) run(f *flight) {
	var w sender
	defer w.bound.close()
	timer := time.NewTimer(senderIdle)
	defer timer.Stop()
	for {
		s.send(&w, f)
		w.trim()
		s.idle.Add(1)
		runtime.Gosched() // lets the loop answer at once, instead of waking it on another core and being woken by it
		select {
		case f = <-s.queue:
			continue
		default:
		}
		timer.Reset(senderIdle)
		select {
		case f = <-s.queue:
		case <-s.ending:
			return
		case <-timer.C:
			// Leave only if no line is promised to an idle sender.
			if s.idle.Add(-1) >= 0 {
				return
			}
			s.idle.Add(1)
			f = <-s.queue
		}
	}
}

func (s *senders) stop() {
	s.start.Do(s.init)
	close(s.ending)
	s.all.Wait()
}

func (w *sender) trim() {
	if cap(w.scratch.Answer) > largestBuffer {
		w.scratch.Answer = nil
	}
	if cap(w.result) > largestBuffer {
		w.result = nil
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
func (s *session) send(w *sender, f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	begun := time.Now()
	id := resultID(f.chunk.Batch, line.number)
	got, err := s.post(w, f, line, id)
	f.Latency = time.Since(begun)
	f.Status, f.RetryAfter = got.Status, got.RetryAfter
	if f.Outcome == plan.Succeeded {
		usage, _ := batchfile.ReadUsage(got.Body)
		f.InputTokens, f.OutputTokens, f.CachedTokens = int(usage.InputTokens), int(usage.OutputTokens), int(usage.CachedTokens)
		record := store.Record{Line: line.number, Attempts: line.requests, Usage: usage}
		w.result = s.append(w.result[:0], f.chunk, line, id, record, answer{status: got.Status, requestID: got.RequestID, body: got.Body})
	} else {
		f.answer = describe(f.Outcome, got, err)
	}
	s.metrics.finished(f.Start.Runner, f.Outcome, f.Latency)
	s.inbox.put(f)
}

// post sends a line: so that its tokens can be seen if the planner wants that and the runner can, else as the user wrote it.
func (s *session) post(w *sender, f *flight, line *sourceLine, id string) (openai.Answer, error) {
	r := f.chunk.run
	var change edits
	if len(r.edits) > 0 {
		change = r.edits[editsKey{line.url(), line.model()}]
	}
	u := s.upstreams[f.Start.Runner]
	ctx := w.bound.begin(r, s.cfg.RequestTimeout)
	defer w.bound.end()
	f.reins.hold(w.bound.cancel)
	defer f.reins.drop()
	refused := 0
	kind := editsKey{line.url(), line.model()}
	if f.Start.Stream && !u.streams.isOff(kind) {
		if streamed, ok := change.streamed(kind.url, line.original); ok {
			a, done, err := s.postStreamed(ctx, w, f, line, streamed, id)
			if done {
				return a, err
			}
			refused = a.Status
		}
	}
	request, err := lineRequest(line, change, id, r.tenant)
	if err != nil {
		return openai.Answer{}, s.unreadable(f, line, err)
	}
	a, err := s.request(ctx, w, f, u, request)
	if refused >= 400 && f.Outcome == plan.Succeeded && u.streams.leave(kind) {
		s.log.WarnContext(ctx, "a runner takes no requests for streams, asking without from now on",
			"runner", u.name, "model", kind.model, "url", kind.url, "status", refused)
	}
	return a, err
}

// request sends a line once, says how it went, and counts it if the upstream may have received it.
func (s *session) request(ctx context.Context, w *sender, f *flight, u *upstream, r openai.Request) (openai.Answer, error) {
	f.chunk.run.attempts.Add(1)
	a, err := u.client.Send(ctx, r, &w.scratch)
	if line := &f.chunk.lines[f.Start.Slot]; !a.Sent {
		f.chunk.run.attempts.Add(-1)
	} else if line.requests < math.MaxUint16 {
		line.requests++
	}
	f.Outcome = openai.Classify(ctx, a, err)
	return a, err
}

// codeDamaged is for input that the medium has changed since its upload.
const codeDamaged = "input_damaged"

// describe keeps what a failed line's result should say. The body is copied: the sender's buffer goes on.
func describe(outcome plan.Outcome, r openai.Answer, err error) answer {
	if err == nil && outcome != plan.Garbled {
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
	code := codes[outcome]
	switch {
	case errors.Is(err, batchfile.ErrDamaged):
		code = codeDamaged
		message += "; upload the file again"
	case code == "":
		code = "not_sent"
	}
	if err == nil && len(r.Body) > 0 {
		message = fmt.Sprintf("%s; it was %d bytes with status %d, beginning %q", message, len(r.Body), r.Status, r.Body[:min(len(r.Body), 200)])
	}
	return answer{code: code, message: message}
}

// record writes a failed line down.
func (s *session) record(f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	rec := store.Record{Line: line.number, Failed: true, Attempts: line.requests}
	s.append(nil, f.chunk, line, resultID(f.chunk.Batch, line.number), rec, f.answer)
}

// append adds a line's result to its chunk's journal. A journal refuses only those whose claim is over.
func (s *session) append(buf []byte, c *chunk, line *sourceLine, id string, rec store.Record, a answer) []byte {
	customID, err := line.customID()
	if err != nil {
		s.log.Error("could not read a custom_id, the line will be sent again", "batch_id", c.Batch, "line", line.number, "error", err)
		return buf
	}
	buf = batchfile.AppendResult(buf, batchfile.Result{
		ID: id, CustomID: customID,
		Status: a.status, RequestID: a.requestID, Body: a.body, ErrorCode: a.code, ErrorMessage: a.message,
	})
	rec.Result = buf
	if err := c.journal.Append(rec); err != nil {
		s.lose(fmt.Errorf("append to journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
		return buf
	}
	s.answered(c.run, rec)
	line.object, line.recorded = nil, true
	return buf
}
