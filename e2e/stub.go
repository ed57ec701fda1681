package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Stub is a runner that records all attempts. It answers each request with a digest of its body, so
// that a test can check that an answer belongs to its line.
type Stub struct {
	URL string
	// MinDelay and MaxDelay limit the random delay of an answer.
	MinDelay, MaxDelay time.Duration

	model   string
	pages   atomic.Int64 // requests for pages, besides the list of models
	address string
	server  *http.Server
	handle  atomic.Pointer[func(w http.ResponseWriter, r *http.Request, body []byte) bool]
	sender  atomic.Pointer[string] // the daemon of the newest attempt
	// answered counts good answers.
	answered atomic.Int64
	mu       sync.Mutex
	ledger   map[string][]*Attempt // by digest of the body
}

// Attempt is one request of a line.
type Attempt struct {
	Begin, End time.Time // End is zero while the request is in flight
	Node       string    // the daemon that sent it, by NodeHeader
	Line       string    // the batch and the line, by X-Request-Id: several may have one body
}

// NodeHeader is a header that daemons send, as configured by upstreams[].headers, so that the stub
// can distinguish them.
const NodeHeader = "X-Node"

// NewStub serves a model until the test ends.
func NewStub(t testing.TB, model string) *Stub {
	s := &Stub{model: model, address: freeAddress(t), ledger: map[string][]*Attempt{}}
	s.URL = "http://" + s.address
	s.Up(t)
	t.Cleanup(s.Down)
	return s
}

// Up makes the stub reachable again after Down.
func (s *Stub) Up(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve),
		ErrorLog: log.New(io.Discard, "", 0)}
	go s.server.Serve(listener)
}

// Down aborts all requests in flight and refuses connections. No process is started meanwhile: it
// would have the listening socket until it executes its program.
func (s *Stub) Down() {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	s.server.Close()
}

// Intercept calls handle before the stub answers; handle reports whether it has answered. nil
// removes it.
func (s *Stub) Intercept(handle func(w http.ResponseWriter, r *http.Request, body []byte) bool) {
	if handle == nil {
		s.handle.Store(nil)
		return
	}
	s.handle.Store(&handle)
}

func (s *Stub) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w, `{"object":"list","data":[{"id":%q,"object":"model","created":1700000000,"owned_by":"stub"}]}`, s.model)
		return
	}
	if r.Method != http.MethodPost { // metrics and capabilities
		s.pages.Add(1)
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	digest := Digest(body)
	attempt := &Attempt{Begin: time.Now(), Node: r.Header.Get(NodeHeader),
		Line: r.Header.Get("X-Request-Id")}
	s.sender.Store(&attempt.Node)
	s.mu.Lock()
	s.ledger[digest] = append(s.ledger[digest], attempt)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		attempt.End = time.Now()
		s.mu.Unlock()
	}()
	if handle := s.handle.Load(); handle != nil && (*handle)(w, r, body) {
		return
	}
	if s.MaxDelay > 0 {
		delay := time.NewTimer(s.MinDelay + rand.N(s.MaxDelay-s.MinDelay+1))
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-r.Context().Done():
			return
		}
	}
	answer(w, s.model, digest)
	s.answered.Add(1)
}

// AwaitAnswers waits until so many good answers were sent, or the request ends.
func (s *Stub) AwaitAnswers(r *http.Request, n int64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.answered.Load() < n {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func answer(w http.ResponseWriter, model, digest string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "stub-"+digest[:8])
	io.WriteString(w, completion(model, digest))
}

// completion returns the body of an answer whose text is a digest.
func completion(model, digest string) string {
	return fmt.Sprintf(
		`{"id":"chatcmpl-%s","object":"chat.completion","created":1700000000,"model":%q,`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, digest[:8],
		model,
		digest)
}

// Digest identifies a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// answerDigest returns the digest in an answer of the stub.
func answerDigest(body json.RawMessage) string {
	var completion struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if json.Unmarshal(body, &completion) != nil || len(completion.Choices) != 1 {
		return ""
	}
	return completion.Choices[0].Message.Content
}

// Requests returns the number of received requests of lines.
func (s *Stub) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, attempts := range s.ledger {
		n += len(attempts)
	}
	return n
}

// Sender returns the daemon that sent the newest attempt; empty: nothing was sent.
func (s *Stub) Sender() string {
	if node := s.sender.Load(); node != nil {
		return *node
	}
	return ""
}

// InFlight returns the number of requests without an answer.
func (s *Stub) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, attempts := range s.ledger {
		for _, attempt := range attempts {
			if attempt.End.IsZero() {
				n++
			}
		}
	}
	return n
}

// Ledger returns all attempts by digest.
func (s *Stub) Ledger() map[string][]Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	ledger := make(map[string][]Attempt, len(s.ledger))
	for digest, attempts := range s.ledger {
		for _, attempt := range attempts {
			ledger[digest] = append(ledger[digest], *attempt)
		}
	}
	return ledger
}
