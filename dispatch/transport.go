package dispatch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// transport sends lines to runners and reports to the loop how each ended. It gives good answers
// to the recorder.
type transport struct {
	settings func() *settings
	recorder answerRecorder
	answers  *share // of memory
	rooms    *rooms
	inbox    *inbox
	log      *slog.Logger
	metrics  *metrics
}

// answerRecorder is the part of the recorder that a transport needs.
type answerRecorder interface {
	recordAnswer(w *sender, f *flight, line *sourceLine, id string, got openai.Answer)
	customID(f *flight, line *sourceLine) (id []byte, ok bool)
}

// send sends one line, records its answer if it is good, and notifies the loop.
func (t *transport) send(w *sender, f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	begun := time.Now()
	id := resultID(f.chunk.Batch, line.number)
	u := t.settings().runner(f.Start.Runner)
	got, err := t.request(w, f, u, line, id)
	f.Latency = time.Since(begun)
	f.Status, f.RetryAfter = got.Status, got.RetryAfter
	if got.Large != nil {
		defer got.Large.File.Close()
		t.rooms.kept(f.Start.Key, got.Large.Size)
	} else if full, is := errors.AsType[*openai.NotKept](err); is {
		t.rooms.notKept(f.Start.Key, full)
	}
	if f.Outcome == plan.Succeeded {
		t.recorder.recordAnswer(w, f, line, id, got)
	} else {
		f.failure = describe(t.answers, f.Outcome, got, err)
		f.failure.customID, _ = t.recorder.customID(f, line)
	}
	if u != nil && !f.Unsent {
		t.metrics.finished(u.name, f.Outcome, f.Latency)
	}
	t.inbox.put(f)
}

// request sends a line: with the engine's priority if that is configured, and if it is refused for
// that, again without it. Nil: there is no such runner any more.
func (t *transport) request(
	w *sender, f *flight, u *runner, line *sourceLine, id string,
) (openai.Answer, error) {
	r := f.chunk.run
	change := r.editsOf(line)
	if u == nil { // removed just now
		f.Outcome = plan.Evicted
		return openai.Answer{}, errRemoved
	}
	ctx := w.request.begin(r, t.settings().RequestTimeout)
	defer w.request.end()
	f.cancel.attach(w.request.cancel)
	defer f.cancel.detach()
	if u.priority == nil || u.refusesPriority.Load() {
		return t.sendEdited(ctx, w, f, u, line, change, id)
	}
	with, added := change.withPriority(line.url(), u.priority)
	a, err := t.sendEdited(ctx, w, f, u, line, with, id)
	if !added || !refusesPriority(f.Outcome, a) {
		return a, err
	}
	if own, err := line.has(priorityMember); own || err != nil {
		return a, err
	}
	status := a.Status
	a, err = t.sendEdited(ctx, w, f, u, line, change, id)
	if f.Outcome == plan.Succeeded && u.refusesPriority.CompareAndSwap(false, true) {
		t.log.WarnContext(ctx, "a runner refuses the member priority, sending none from now on; "+
			"enable priorities in the engine or remove upstreams[].tuning.engine_priority",
			"runner", u.name, "status", status)
	}
	return a, err
}

// refusesPriority reports whether a runner seems to refuse a body for its priority. The same body
// without it shows whether it does.
func refusesPriority(outcome plan.Outcome, a openai.Answer) bool {
	return outcome == plan.Refused &&
		bytes.Contains(bytes.ToLower(a.Body), []byte(priorityMember))
}

// sendEdited sends a line with these edits once, or twice: if the planner wants to see its tokens,
// first as a stream, and if that is refused or not understood, without.
func (t *transport) sendEdited(
	ctx context.Context, w *sender, f *flight, u *runner, line *sourceLine, change edits, id string,
) (openai.Answer, error) {
	refused := 0
	kind := editsKey{line.url(), line.model()}
	if f.Start.Stream && !u.streams.isOff(kind) {
		if edits, ok := change.forStream(line); ok {
			a, done, err := t.stream(ctx, w, f, u, line, edits, id)
			if done {
				return a, err
			}
			refused = a.Status
		}
	}
	request, err := u.lineRequest(line, change, id, f.chunk.run.tenant)
	if err != nil {
		return openai.Answer{}, t.unreadable(f, line, err)
	}
	a, err := t.post(ctx, w, f, u, request)
	if refused >= 400 && f.Outcome == plan.Succeeded && u.streams.turnOff(kind) {
		t.log.WarnContext(ctx, "a runner refuses requests for streams, sending none from now on",
			"runner", u.name, "model", kind.model, "url", kind.url, "status", refused)
	}
	return a, err
}

// errRemoved reports that a line was not sent.
var errRemoved = errors.New("the runner is configured no more")

// lineRequest returns the request that sends a line with these edits.
func (u *runner) lineRequest(
	line *sourceLine, change edits, id, tenant string,
) (openai.Request, error) {
	size, open, err := line.body(change)
	r := openai.Request{Path: line.url(), NewBody: open, Size: size, ID: id, Tenant: tenant}
	if u.Dialect.CacheHeaders {
		r.CacheTag = cacheTag(tenant, line.PrefixHash)
	}
	return r, err
}

// post sends a request, sets the line's outcome, and counts the request if the runner may have
// received it.
func (t *transport) post(
	ctx context.Context, w *sender, f *flight, u *runner, r openai.Request,
) (openai.Answer, error) {
	f.chunk.run.attempts.Add(1)
	begun := time.Now()
	a, err := u.client.Send(ctx, r, &w.scratch)
	line := &f.chunk.lines[f.Start.Slot]
	if !a.Sent {
		f.chunk.run.attempts.Add(-1)
	} else if line.requests < math.MaxUint16 {
		line.requests++
	}
	f.Outcome = openai.Classify(ctx, a, err)
	f.Foreign = f.Outcome == plan.Refused && openai.IsForeign(a)
	if u.IsGateway() && a.Status == http.StatusBadGateway && time.Since(begun) < refusedWithin {
		f.Outcome = plan.Unreachable
	}
	if errors.Is(err, openai.ErrUnreadable) && ctx.Err() == nil {
		return a, t.unreadable(f, line, err)
	}
	if a.Status > 0 {
		t.reported(ctx, u, a)
	}
	return a, err
}

// refusedWithin is how soon a gateway answers 502 if it found no engine to send a line to. A line
// that an engine died of has taken longer. While a gateway has not noticed yet that an engine has
// gone, a line may meet it again and again, and must not be taken for the cause.
const refusedWithin = 100 * time.Millisecond

// unreadable sets the outcome of a line whose input can't be read, for which no runner is to blame.
// A line that was damaged on the disk fails; any other is sent again.
func (t *transport) unreadable(f *flight, line *sourceLine, err error) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		f.Outcome, f.Unsent = plan.Refused, true
		t.log.Error("an input line is damaged", "batch_id", f.chunk.Batch, "line", line.number,
			"file_id", line.input.FileID, "error", err)
		return err
	}
	f.Outcome = plan.Evicted
	t.log.Error("could not read an input line, trying again", "batch_id", f.chunk.Batch,
		"line", line.number, "error", err)
	return err
}
