package send

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
)

// Results of a request for a stream; labels of a metric.
const (
	streamed            = "streamed"       // the answer was assembled from a stream
	notStreamed         = "not_streamed"   // the runner answered at once
	streamFailed        = "failed"         // it failed as it might have without streaming
	streamRefused       = "refused"        // the runner refuses such requests
	streamNotUnderstood = "not_understood" // the answer could not be assembled
)

// forStream returns the edits with those that make the answer a stream. ok is false if the line
// can't be streamed: its url has no streams, or its body has a member that hinders them.
func forStream(e work.Edits, line *work.Line) (_ work.Edits, ok bool) {
	parameters, ok := openai.StreamParameters(line.URL())
	hinders := openai.HindersStream(line.URL())
	if !ok || e.HaveAny(hinders) {
		return e, false
	}
	if hindered, err := line.HasAny(hinders); hindered || err != nil {
		return e, false
	}
	return e.Overriding(parameters), true
}

// stream posts a request for a stream, so that its tokens can be seen. understood is false if the
// line must be posted again without that: the request was refused, or its answer was not
// understood. Neither counts as an attempt.
func (t *transport) stream(
	ctx context.Context, w *sender, f *work.Flight, u *upstream.Runner, r openai.Request,
) (a openai.Answer, understood bool, err error) {
	var seen upstream.StreamGaps
	events := 0
	r.Watch = t.watch(u, f.Start, &events, &seen)
	a, err = t.post(ctx, w, f, u, r)
	result := t.streamResult(ctx, u, upstream.AnswerKind{URL: r.Path, Model: f.Start.Key.Model}, a,
		events, err)
	t.Metrics.Streamed(u.Name, result)
	if result == streamed && a.Texts == 1 {
		u.Streams.Ended(time.Now(), seen, int(a.Usage.OutputTokens), events)
	}
	return a, result != streamNotUnderstood && result != streamRefused, err
}

// watch returns functions that report the tokens of a stream to the loop and count its events.
func (t *transport) watch(
	u *upstream.Runner, start plan.Start, events *int, seen *upstream.StreamGaps,
) *openai.Watch {
	begun := time.Now()
	return &openai.Watch{
		First: func() {
			*events++
			latency := time.Since(begun)
			seen.First = latency
			t.Metrics.FirstToken(u.Name, latency)
			t.Inbox.Event(&plan.FirstToken{Start: start, Latency: latency})
		},
		More: func(tokens int, after time.Duration) {
			*events += tokens
			seen.Add(after)
			now := time.Now()
			if start.Runner != u.Name || !u.Streams.Trusted(now) {
				return // a gateway's tokens may be those of any of its engines
			}
			if sum, due := u.Streams.AddGap(u.Name, now, tokens, after); due {
				t.Inbox.Event(sum)
			}
		},
	}
}

// streamResult returns how a request for a stream ended. It turns off streams of this kind that are
// not understood.
func (t *transport) streamResult(
	ctx context.Context, u *upstream.Runner, kind upstream.AnswerKind, a openai.Answer, events int,
	err error,
) string {
	switch {
	case err != nil && ctx.Err() != nil:
		return streamFailed
	case errors.Is(err, openai.ErrNotAssembled):
		// These two say nothing against the next stream.
		passing := errors.Is(err, openai.ErrBrokenOff) || errors.Is(err, openai.ErrTooLong)
		if !passing && u.Streams.TurnOff(kind) {
			t.Log.WarnContext(ctx, "could not understand the stream of a runner, requesting none "+
				"from now on", "runner", u.Name, "model", kind.Model, "url", kind.URL, "error", err)
		}
		return streamNotUnderstood
	case err != nil:
		return streamFailed
	case refusesStream(a):
		return streamRefused
	case a.Status >= 300:
		return streamFailed
	case events == 0:
		return notStreamed
	}
	return streamed
}

// refusesStream reports whether a runner seems to refuse requests for streams. The same request
// without streaming shows whether it does.
func refusesStream(a openai.Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return strings.Contains(strings.ToLower(string(a.Body)), "stream")
	}
	return false
}
