package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync/atomic"
	"time"
)

// model is the model that the stub serves.
const model = "llama-70b"

// answerBody is an ordinary chat completion.
const answerBody = `{"id":"chatcmpl-8f1c2a6e0b7d4f3aa1f0c9d2","object":"chat.completion","created":1767225600,"model":"llama-70b",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"The quick brown fox jumps over the lazy dog, and that is all there is to say."},` +
	`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":86,"completion_tokens":21,"total_tokens":107}}`

// stub is an upstream that answers at once, or after a delay, and records the times of requests.
type stub struct {
	delay       time.Duration // of each answer
	streams     bool          // answers those who ask for a stream with one
	count       atomic.Int64
	streamed    atomic.Int64 // of count
	first, last atomic.Int64 // Unix nanoseconds; 0: none
}

// ledger is the record of a stub since it was last cleared.
type ledger struct {
	Count       int64
	Streamed    int64     // of these
	First, Last time.Time // zero: none
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/ledger" && r.Method == "DELETE":
		s.count.Store(0)
		s.streamed.Store(0)
		s.first.Store(0)
		s.last.Store(0)
	case r.URL.Path == "/ledger":
		json.NewEncoder(w).Encode(s.ledger())
	case r.URL.Path == "/v1/models":
		fmt.Fprintf(
			w, `{"object":"list","data":[{"id":%q,"object":"model","created":1767225600,"owned_by":"bench"}]}`, model)
	case r.Method != "POST": // it has no metrics and no capabilities
		w.WriteHeader(http.StatusNotFound)
	default:
		s.first.CompareAndSwap(0, time.Now().UnixNano())
		wanted := s.wantsStream(r)
		if s.delay > 0 {
			time.Sleep(s.delay)
		}
		if wanted {
			answerStream(w)
			s.streamed.Add(1)
		} else {
			io.WriteString(w, answerBody)
		}
		s.last.Store(time.Now().UnixNano())
		s.count.Add(1)
	}
}

// wantsStream reads a request. A stub without streams does not look at it.
func (s *stub) wantsStream(r *http.Request) bool {
	if !s.streams {
		io.Copy(io.Discard, r.Body)
		return false
	}
	body, err := io.ReadAll(r.Body)
	return err == nil && streamField.Match(body)
}

var streamField = regexp.MustCompile(`"stream": ?true`)

func (s *stub) ledger() ledger {
	l := ledger{Count: s.count.Load(), Streamed: s.streamed.Load()}
	if first := s.first.Load(); first != 0 {
		l.First = time.Unix(0, first)
	}
	if last := s.last.Load(); last != 0 {
		l.Last = time.Unix(0, last)
	}
	return l
}

// perSecond returns the rate from the first request to the last.
func (l ledger) perSecond() float64 { return float64(l.Count) / l.Last.Sub(l.First).Seconds() }

// serveUntilParentEnds listens, prints its URL to standard output, and serves until standard input
// ends.
func serveUntilParentEnds(h http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Println("http://" + listener.Addr().String()); err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, h)
}

// upstream is a stub in a separate process.
type upstream struct {
	*process
	url string
}

func (l *environment) startUpstream(ctx context.Context) (*upstream, error) {
	return l.startSlowUpstream(ctx, 0)
}

// startSlowUpstream starts an upstream whose answers take a while.
func (l *environment) startSlowUpstream(
	ctx context.Context, delay time.Duration,
) (*upstream, error) {
	return l.startStub(ctx, delay.String())
}

// startStreamingUpstream starts an upstream that streams where that is asked for.
func (l *environment) startStreamingUpstream(ctx context.Context) (*upstream, error) {
	return l.startStub(ctx, "0s", "streams")
}

func (l *environment) startStub(ctx context.Context, args ...string) (*upstream, error) {
	p, err := l.startRole(ctx, "stub", args...)
	if err != nil {
		return nil, fmt.Errorf("start upstream: %w", err)
	}
	url, err := p.readLine()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start upstream: %w", err)
	}
	return &upstream{p, url}, nil
}

func (u *upstream) clear(ctx context.Context) error {
	return ask(ctx, "DELETE", u.url+"/ledger", nil, nil)
}

func (u *upstream) ledger(ctx context.Context) (seen ledger, err error) {
	err = ask(ctx, "GET", u.url+"/ledger", nil, &seen)
	return seen, err
}

// awaitCount returns when count requests have arrived since clear.
func (u *upstream) awaitCount(ctx context.Context, count int64) error {
	for {
		seen, err := u.ledger(ctx)
		if err != nil || seen.Count >= count {
			return err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("await %d requests at the upstream, which saw %d: %w", count,
				seen.Count, err)
		}
	}
}

// awaitFirst returns when the first request since clear arrived.
func (u *upstream) awaitFirst(ctx context.Context) (time.Time, error) {
	for {
		seen, err := u.ledger(ctx)
		if err != nil || !seen.First.IsZero() {
			return seen.First, err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return time.Time{}, fmt.Errorf("await the first line at the upstream: %w", err)
		}
	}
}
