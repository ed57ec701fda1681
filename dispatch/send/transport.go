package send

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/answercheck"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/tracing"
)

// transport sends lines to runners and reports to the loop how each ended. It gives good answers
// to the recorder.
type transport struct {
	*work.Session
	Parts
	checking answercheck.Places
}

// Parts are what senders need of the other parts of a session.
type Parts struct {
	// Runner returns the upstream that a planned runner stands for, nil if it is configured no
	// more, and the time limit of a request.
	Runner   func(planned string) (u *upstream.Runner, limit time.Duration)
	Recorder Recorder
	Rooms    *Rooms
	Metrics  Metrics
}

// Recorder records good answers.
type Recorder interface {
	// RecordAnswer appends an answer to the chunk's journal. If it can't, the line is sent again.
	RecordAnswer(w *work.ResultBuffer, f *work.Flight, line *work.Line, id string,
		got openai.Answer)
	// CustomID reads the custom_id for the line's result. If it can't, the line is sent again.
	CustomID(f *work.Flight, line *work.Line) (id []byte, ok bool)
}

// Metrics count what runners answer.
type Metrics interface {
	Finished(runner string, outcome plan.Outcome, latency time.Duration)
	FirstToken(runner string, latency time.Duration)
	Streamed(runner, result string)
	Reported(runner string, r openai.Report)
}

// send sends one line, records its answer if it is good, and notifies the loop.
func (t *transport) send(w *sender, f *work.Flight) {
	line := f.Line()
	begun := time.Now()
	id := work.ResultID(f.Chunk.Batch, line.Number())
	u, limit := t.Runner(f.Start.Runner)
	limit = cmp.Or(f.Chunk.Run.RequestTimeout, limit)
	w.span = f.Chunk.Span.Line(line.Number(), begun)
	got, err := t.request(w, f, u, line, id, limit)
	if f.Outcome == plan.Refused && !f.Foreign && line.AskPlainly(&t.Memory.Inputs) {
		got, err = t.request(w, f, u, line, id, limit) // it may be too long with the last answer
	}
	f.Latency = time.Since(begun)
	f.Status, f.RetryAfter = got.Status, got.RetryAfter
	if got.Large != nil {
		defer got.Large.File.Close()
		t.Rooms.kept(f.Start.Key, got.Large.Size)
	} else if full, is := errors.AsType[*openai.NotKept](err); is {
		t.Rooms.notKept(f.Start.Key, full)
	}
	if f.Outcome == plan.Succeeded {
		usage := got.Usage
		f.InputTokens, f.OutputTokens, f.CachedTokens = int(usage.InputTokens),
			int(usage.OutputTokens), int(usage.CachedTokens)
		err = t.check(f, line, &got)
	}
	if f.Outcome == plan.Succeeded {
		t.Recorder.RecordAnswer(&w.result, f, line, id, got)
	} else {
		f.Failure = describe(&t.Memory.Answers, f.Outcome, got, err)
		f.Failure.CustomID, _ = t.Recorder.CustomID(f, line)
	}
	endSpan(&w.span, f, u)
	if u != nil && !f.Unsent {
		t.Metrics.Finished(u.Name, f.Outcome, f.Latency)
	}
	t.Inbox.Put(f)
}

// endSpan ends the span of a line's attempt.
func endSpan(span *tracing.Line, f *work.Flight, u *upstream.Runner) {
	if !span.Sampled() {
		return
	}
	var server *url.URL
	if u != nil {
		server, _ = u.Server()
	}
	span.End(tracing.Attempt{Line: f.Line().Number(), Attempt: f.Start.Attempt,
		Outcome: f.Outcome.String(), Status: f.Status, InputTokens: f.InputTokens,
		Failed:       f.Outcome != plan.Succeeded && f.Outcome != plan.Evicted,
		OutputTokens: f.OutputTokens}, server)
}

// request sends a line in the first of its variants that the runner does not refuse. Nil: there is
// no such runner any more.
func (t *transport) request(
	w *sender, f *work.Flight, u *upstream.Runner, line *work.Line, id string,
	limit time.Duration,
) (a openai.Answer, err error) {
	if u == nil { // removed just now
		f.Outcome = plan.Evicted
		return a, errRemoved
	}
	ctx := w.request.begin(f.Chunk.Run, limit)
	defer w.request.end()
	f.Cancel.Attach(w.request.evict)
	defer f.Cancel.Detach()
	given := withModel(f.Chunk.Run.EditsOf(line), u, line)
	var refused refusal
	for _, v := range variants {
		change, possible := v.edits(given, f, u, line)
		if !possible || v.has(refused.part) {
			continue
		}
		a, refused, err = t.sendAs(ctx, w, f, u, line, v, change, id, refused)
		if refused.part == nothing {
			break
		}
	}
	if f.Outcome == plan.Succeeded {
		t.avoid(ctx, u, line, refused)
	}
	return a, err
}

// sendAs sends a line as a variant. It returns what the runner seems to refuse of it.
func (t *transport) sendAs(
	ctx context.Context, w *sender, f *work.Flight, u *upstream.Runner, line *work.Line, v variant,
	change work.Edits, id string, earlier refusal,
) (a openai.Answer, refused refusal, err error) {
	refused = refusal{stream: earlier.stream, priority: earlier.priority}
	request, err := lineRequest(u, line, change, id, f.Chunk.Run.Tenant)
	if u.Queued {
		request.Deadline = f.Chunk.Run.Batch().Deadline
	}
	if !u.Reserved { // servers elsewhere don't get it
		request.Traceparent = w.span.Traceparent
	}
	if err != nil {
		return a, refused, t.unreadable(f, line, err)
	}
	understood := true
	if v.stream {
		a, understood, err = t.stream(ctx, w, f, u, request)
	} else {
		a, err = t.post(ctx, w, f, u, request)
	}
	switch {
	case !understood:
		refused.part, refused.stream = theStream, a.Status
	case v.priority && refusesPriority(f.Outcome, a):
		own, readErr := line.Has(priorityMember)
		if own || readErr != nil {
			return a, refused, readErr
		}
		refused = refusal{part: thePriority, priority: a.Status}
	}
	return a, refused, err
}

// errRemoved reports that a line was not sent.
var errRemoved = errors.New("the runner is configured no more")

// lineRequest returns the request that sends a line with these edits.
func lineRequest(
	u *upstream.Runner, line *work.Line, change work.Edits, id, tenant string,
) (openai.Request, error) {
	body, err := line.Body(change)
	r := openai.Request{Path: line.URL(), NewBody: reading(body), Size: body.Size, ID: id,
		Tenant: tenant}
	if u.Dialect.CacheHeaders {
		r.CacheTag = cacheTag(tenant, line.PrefixHash())
	}
	return r, err
}

// reading returns a function that opens a body for a request.
func reading(body work.Body) func() io.ReadCloser {
	if body.InFile {
		return func() io.ReadCloser { return openai.FileBody(body.Open(), body.Size) }
	}
	return func() io.ReadCloser { return io.NopCloser(body.Open()) }
}

// post sends a request, sets the line's outcome, and counts the request if the runner may have
// received it.
func (t *transport) post(
	ctx context.Context, w *sender, f *work.Flight, u *upstream.Runner, r openai.Request,
) (openai.Answer, error) {
	f.Chunk.Run.CountRequests(1)
	begun := time.Now()
	a, err := u.Send(ctx, r, &w.scratch)
	if !a.Sent {
		f.Chunk.Run.CountRequests(-1)
	} else {
		f.Line().CountRequest()
	}
	f.Outcome = openai.Classify(ctx, a, err)
	f.Foreign = f.Outcome == plan.Refused && openai.IsForeign(a)
	f.Unknown = f.Outcome == plan.Denied && openai.Unknown(a)
	if u.IsGateway() && a.Status == http.StatusBadGateway && time.Since(begun) < refusedWithin {
		f.Outcome = plan.Unreachable
	}
	if errors.Is(err, openai.ErrUnreadable) && ctx.Err() == nil {
		return a, t.unreadable(f, f.Line(), err)
	}
	if a.Status > 0 {
		t.reported(ctx, u, a)
	}
	return a, err
}

// refusedWithin limits the time in which a gateway answers 502 if it found no engine. A line
// that an engine died of has taken longer. While a gateway has not noticed yet that an engine has
// gone, a line may meet it again and again, and must not be taken for the cause.
const refusedWithin = 100 * time.Millisecond

// unreadable sets the outcome of a line whose input can't be read, for which no runner is to blame.
// A line that was damaged on the disk fails; any other is sent again.
func (t *transport) unreadable(f *work.Flight, line *work.Line, err error) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		f.Outcome, f.Unsent = plan.Refused, true
		t.Log.Error("an input line is damaged", "batch_id", f.Chunk.Batch, "line", line.Number(),
			"file_id", line.FileID(), "error", err)
		return err
	}
	f.Outcome = plan.Evicted
	t.Log.Error("could not read an input line, trying again", "batch_id", f.Chunk.Batch,
		"line", line.Number(), "error", err)
	return err
}
