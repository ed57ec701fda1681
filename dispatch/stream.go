package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// streams is what is known about streaming a runner's answers.
type streams struct {
	gaps gapMeter

	mu  sync.Mutex
	off map[editsKey]bool // answers that can't be streamed, or not be put together
}

func (s *streams) isOff(kind editsKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off[kind]
}

// turnOff stops the streaming of answers of a kind. first reports that it was on before.
func (s *streams) turnOff(kind editsKey) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off == nil {
		s.off = map[editsKey]bool{}
	}
	first = !s.off[kind]
	s.off[kind] = true
	return first
}

// forget drops what is known of models that are not served any more.
func (s *streams) forget(served map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.off, func(kind editsKey, _ bool) bool {
		_, still := served[kind.model]
		return !still
	})
}

// How a line went that was to be streamed; labels of a metric.
const (
	streamJoined  = "joined"  // it was, and put together
	streamWhole   = "whole"   // the runner answered all at once, whatever it was asked
	streamFailed  = "failed"  // it failed as it might have without
	streamRefused = "refused" // the runner takes no such requests
	streamUnclear = "unclear" // it could not be put together
)

// streamed returns the edits that make an answer a stream besides what they did before; ok is false
// where a line can't be streamed: its url has no streams, or its body says itself how it wants to
// be streamed.
func (e edits) streamed(line *sourceLine) (_ edits, ok bool) {
	parameters, ok := openai.StreamParameters(line.url())
	if !ok || e.names("stream_options") {
		return e, false
	}
	if own, err := line.has("stream_options"); own || err != nil {
		return e, false
	}
	e.overrides = maps.Clone(e.overrides)
	if e.overrides == nil {
		e.overrides = map[string]json.RawMessage{}
	}
	for name, value := range parameters {
		e.overrides[name] = json.RawMessage(value)
	}
	return e, true
}

func (e edits) names(member string) bool {
	return e.defaults[member] != nil || e.overrides[member] != nil
}

// stream posts a line so that its tokens can be seen. done is false if the line must be posted again
// without that: the request was refused, or its answer was not understood. Neither counts as an
// attempt.
func (t *transport) stream(
	ctx context.Context, w *sender, f *flight, line *sourceLine, change edits, id string,
) (a openai.Answer, done bool, err error) {
	r, err := lineRequest(line, change, id, f.chunk.run.tenant)
	if err != nil {
		return a, true, t.unreadable(f, line, err)
	}
	u := t.upstreams[f.Start.Runner]
	kind := editsKey{r.Path, f.Start.Key.Model}
	begun := time.Now()
	pieces := 0
	r.Watch = &openai.Watch{
		First: func() {
			pieces++
			latency := time.Since(begun)
			t.metrics.firstToken(u.name, latency)
			t.notify(&plan.FirstToken{Start: f.Start, Latency: latency})
		},
		More: func(tokens int, after time.Duration) {
			pieces += tokens
			if news, due := u.streams.gaps.add(u.name, time.Now(), tokens, after); due {
				t.notify(news)
			}
		},
	}
	a, err = t.post(ctx, w, f, u, r)
	result := streamJoined
	switch {
	case err != nil && ctx.Err() != nil:
		result = streamFailed
	case errors.Is(err, openai.ErrNotAssembled):
		result = streamUnclear
		// streaming as such
		about := !errors.Is(err, openai.ErrBrokenOff) && !errors.Is(err, openai.ErrTooLong)
		if about && u.streams.turnOff(kind) {
			t.log.WarnContext(
				ctx, "a runner's stream is not understood, asking without from now on",
				"runner", u.name, "model", kind.model, "url", kind.url, "error", err)
		}
	case err != nil:
		result = streamFailed
	case refusesStream(a):
		result = streamRefused
	case a.Status >= 300:
		result = streamFailed
	case pieces == 0:
		result = streamWhole
	default:
		if a.Texts == 1 {
			u.streams.gaps.learn(int(a.Usage.OutputTokens), pieces)
		}
	}
	t.metrics.streamed(u.name, result)
	return a, result != streamUnclear && result != streamRefused, err
}

// refusesStream reports whether a runner seems to take no requests for streams. Whether it does
// shows when the same line is taken without.
func refusesStream(a openai.Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return strings.Contains(strings.ToLower(string(a.Body)), "stream")
	}
	return false
}
