package inline

import (
	"context"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// answer is the answer of a runner on its way to the client. It reads along, and ends the request's
// place.
type answer struct {
	exchange *exchange
	place    Place
	sent     time.Time

	response io.ReadCloser // the body of the runner's answer
	status   int
	wait     time.Duration // Retry-After
	stream   bool
	events   *events // nil: the answer is no stream of tokens
	usage    usageScan
	rewriter *rewriter // nil: the answer is not changed

	spoke, last time.Time // when the first and the last tokens came; zero: none did
	tokens      int
	complete    bool
	broke       error // why the body ended early
	done        bool
}

// begin takes over the answer.
func (a *answer) begin(r *http.Response) {
	a.response, a.status = r.Body, r.StatusCode
	r.Body = a
	if r.StatusCode/100 != 2 {
		a.wait = retryAfter(r.Header, time.Now())
		return
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	a.stream = media == "text/event-stream"
	readable := r.Header.Get("Content-Encoding") == ""
	path := a.exchange.in.URL.Path
	if a.stream && readable {
		a.events = &events{responses: path == responsesURL}
	}
	if a.exchange.literal != nil && a.exchange.config.RewriteModel && readable &&
		(a.stream || media == "application/json") {
		a.rewriter = newRewriter(a.exchange.literal, path == responsesURL, a.stream)
		r.ContentLength = -1
		for _, name := range []string{"Content-Length", "Etag", "Content-Md5", "Digest",
			"Content-Digest"} {
			r.Header.Del(name)
		}
	}
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.rewriter == nil {
		return a.read(p)
	}
	for {
		if n := a.rewriter.take(p); n > 0 {
			return n, nil
		}
		if a.complete {
			return 0, io.EOF
		}
		n, err := a.read(p)
		if n > 0 && !a.rewriter.put(p[:n]) {
			return n, err
		}
		if err != nil && err != io.EOF {
			return a.rewriter.take(p), err
		}
	}
}

// read reads from the runner and notes what has come.
func (a *answer) read(p []byte) (int, error) {
	asked := time.Now()
	n, err := a.response.Read(p)
	if n > 0 && a.status/100 == 2 {
		a.note(p[:n], asked)
	}
	switch err {
	case nil:
	case io.EOF:
		a.complete = true
	default:
		a.broke = err
	}
	return n, err
}

// note reads along. asked is when the client was ready for more: the time that it takes to read
// says nothing about the runner.
func (a *answer) note(p []byte, asked time.Time) {
	a.usage.read(p)
	if a.events == nil {
		return
	}
	tokens := a.events.count(p)
	if tokens == 0 {
		return
	}
	now := time.Now()
	a.tokens += tokens
	if a.spoke.IsZero() {
		a.spoke = now
		a.place.Spoke()
		if tokens > 1 {
			a.place.Decoded(tokens-1, 0, 0)
		}
		a.exchange.proxy.metrics.first(a.exchange, now)
	} else {
		a.place.Decoded(tokens, 1, now.Sub(asked))
	}
	a.last = now
}

// Close implements io.Closer. It ends the place.
func (a *answer) Close() error {
	err := a.response.Close()
	a.finish()
	return err
}

// failed ends the place of a request that has no answer.
func (a *answer) failed(outcome plan.Outcome, err error) error {
	a.report(outcome)
	return &upstreamError{outcome, err}
}

// finish ends the place, if nothing has.
func (a *answer) finish() {
	if !a.done {
		a.report(a.outcome())
	}
}

func (a *answer) report(outcome plan.Outcome) {
	if a.done {
		return
	}
	a.done = true
	end := time.Now()
	r := plan.RequestEnded{Outcome: outcome, Status: a.status, RetryAfter: a.wait,
		Latency: end.Sub(a.sent), OutputTokens: a.tokens}
	if u, ok := a.usage.usage(); ok {
		r.PromptTokens, r.CachedTokens = int(u.InputTokens), int(u.CachedTokens)
		r.OutputTokens, r.ReasoningTokens = int(u.OutputTokens), int(u.ReasoningTokens)
	}
	a.place.Done(r)
	a.exchange.proxy.metrics.ended(a.exchange, a, r)
}

// outcome returns what has become of the request, as for lines.
func (a *answer) outcome() plan.Outcome {
	switch s := a.status; {
	case !a.complete && a.broke != nil && context.Cause(a.exchange.in.Context()) == nil:
		return plan.Died
	case !a.complete && s/100 == 2: // the client has gone, or its key
		return plan.Evicted
	case s/100 == 2:
		return plan.Succeeded
	case isShed(s):
		return plan.Shed
	case s == http.StatusBadGateway:
		return plan.Died // from a gateway whose backend broke off or is not there
	case s >= http.StatusInternalServerError:
		return plan.Failed
	case s == http.StatusUnauthorized || s == http.StatusForbidden ||
		s == http.StatusProxyAuthRequired:
		return plan.Denied
	}
	return plan.Refused
}
