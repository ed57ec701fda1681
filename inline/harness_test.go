package inline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// runners is an Admission over a list of servers. It takes them in turns, avoids those that a
// request avoids if it can, and notes everything.
type runners struct {
	bases  []*url.URL
	header http.Header
	// admit, if set, decides in place of the list.
	admit func(ctx context.Context, r plan.Request) error

	mu       sync.Mutex
	next     int
	requests []plan.Request
	ended    []plan.RequestEnded
	open     int
	spoke    int
	tokens   int
	gaps     int
	changed  chan struct{}
}

func newRunners(t testing.TB, urls ...string) *runners {
	t.Helper()
	r := &runners{changed: make(chan struct{}, 1), header: http.Header{
		"Authorization": {"Bearer of-the-engine"}}}
	for _, u := range urls {
		base, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		r.bases = append(r.bases, base)
	}
	return r
}

func (r *runners) Admit(ctx context.Context, request plan.Request) (Place, error) {
	r.mu.Lock()
	admit := r.admit
	r.mu.Unlock()
	if admit != nil {
		if err := admit(ctx, request); err != nil {
			return nil, err
		}
	}
	if request.Outside {
		return nil, &Refused{plan.Refusal{Why: plan.NoRunner}} // there is no fallback
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request)
	var base *url.URL
	for range r.bases {
		base = r.bases[r.next%len(r.bases)]
		r.next++
		if !slices.Contains(request.Avoid, base.Host) {
			break
		}
	}
	r.open++
	return &place{runners: r, base: base}, nil
}

// decide replaces admit.
func (r *runners) decide(admit func(ctx context.Context, r plan.Request) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admit = admit
}

// last returns what was asked for last.
func (r *runners) last() plan.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[len(r.requests)-1]
}

// end waits until no request has a place, and returns the report of the last one that ended.
func (r *runners) end(t testing.TB) plan.RequestEnded {
	t.Helper()
	for limit := time.After(10 * time.Second); ; {
		r.mu.Lock()
		if r.open == 0 && len(r.ended) > 0 {
			defer r.mu.Unlock()
			return r.ended[len(r.ended)-1]
		}
		r.mu.Unlock()
		select {
		case <-r.changed:
		case <-limit:
			t.Fatal("a place was not ended")
		}
	}
}

type place struct {
	*runners
	base *url.URL
	done bool
}

func (p *place) Admission() plan.Admission {
	return plan.Admission{Runner: p.base.Host, Waited: 3 * time.Millisecond, Why: plan.AtLimit}
}
func (p *place) Base() *url.URL      { return p.base }
func (p *place) Header() http.Header { return p.header }

func (p *place) Spoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoke++
}

func (p *place) Decoded(tokens, gaps int, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens += tokens
	p.gaps += gaps
}

func (p *place) Done(r plan.RequestEnded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		panic("a place was ended twice")
	}
	p.done = true
	p.open--
	p.ended = append(p.ended, r)
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// await waits until something is so, and fails the test after 10 s with what is instead.
func await(t testing.TB, is func() bool, instead func() string) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for end := time.After(10 * time.Second); !is(); {
		select {
		case <-end:
			t.Fatal(instead())
		case <-again.C:
		}
	}
}

// awaitNothingHeld waits until no memory is held for bodies.
func (s *service) awaitNothingHeld() {
	s.t.Helper()
	used := &s.proxy.memory.used
	await(s.t, func() bool { return used.Load() == 0 }, func() string {
		return fmt.Sprintf("%d bytes are held", used.Load())
	})
}

// useCases is a fixed set of use cases by tenant and name; "" is for all tenants.
type useCases struct {
	mu       sync.Mutex
	cases    map[string]UseCase
	implicit bool
}

func (u *useCases) Find(tenant, model string) (UseCase, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range []string{tenant + "/" + model, "/" + model} {
		if found, ok := u.cases[key]; ok {
			found.Name = model
			return found, true
		}
	}
	return UseCase{Name: model, Implicit: true}, u.implicit
}

// Objective knows three InferenceObjectives by the names of their classes.
func (u *useCases) Objective(name string) (class string, found bool) {
	return name, name == "critical" || name == "standard" || name == "flex"
}

func (u *useCases) Names(tenant string) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.cases {
		if owner, name, _ := strings.Cut(key, "/"); owner == "" || owner == tenant {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// service is the API with a Proxy, on loopback.
type service struct {
	t        testing.TB
	proxy    *Proxy
	api      *api.Server
	url      string
	address  string
	registry *prometheus.Registry
}

// newService serves interactive requests. Without use cases, all models are served.
func newService(t testing.TB, a Admission, u *useCases, edit ...func(*Config)) *service {
	t.Helper()
	s := &service{t: t, registry: prometheus.NewRegistry()}
	if u == nil {
		u = &useCases{implicit: true}
	}
	config := DefaultConfig()
	for _, e := range edit {
		e(&config)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	var err error
	s.proxy, err = New(config, Deps{Admission: a, UseCases: u, Registerer: s.registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.Close)
	limits := httpserver.DefaultConfig()
	limits.MaxConnections = 0
	s.serve(httpserver.Options{HalfClose: true}, limits)
	return s
}

// serve serves the API on a free port.
func (s *service) serve(options httpserver.Options, limits httpserver.Config) {
	t := s.t
	t.Helper()
	server, backend, closeAll, err := newServer(s.proxy, t.TempDir(), options, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	s.api = backend
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	s.address = listener.Addr().String()
	s.url = "http://" + s.address
	if options.TLS != nil {
		s.url = "https://" + s.address
	}
}

// newServer returns a server of the API with a Proxy, the API, and what closes its
// store in a directory.
func newServer(
	p *Proxy, directory string, options httpserver.Options, limits httpserver.Config,
) (_ *httpserver.Server, backend *api.Server, closeAll func(), err error) {
	db, err := sqlite.Open(context.Background(), filepath.Join(directory, "meta.db"),
		sqlite.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	files, err := disk.Open(directory, disk.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	keys, err := api.ParseKeys("tenant-a=key-a,tenant-b=key-b")
	if err != nil {
		return nil, nil, nil, err
	}
	backend, err = api.New(api.DefaultConfig(), api.Deps{Store: api.Store{Metadata: db,
		Progress: db, Blobs: files.Blobs(), Journals: files.Journals(), Ledger: db}, Inline: p,
		Keys: keys})
	if err != nil {
		return nil, nil, nil, err
	}
	server, err := httpserver.New(limits, backend.Handler(), options)
	return server, backend, func() { files.Close(); db.Close() }, err
}

// request returns a request of tenant-a.
func (s *service) request(ctx context.Context, path, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer key-a")
	r.Header.Set("Content-Type", "application/json")
	return r
}

// post sends a request and reads the answer.
func (s *service) post(path, body string, edit ...func(*http.Request)) (*http.Response, string) {
	s.t.Helper()
	r := s.request(s.t.Context(), path, body)
	for _, e := range edit {
		e(r)
	}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatalf("read answer: %v after %q", err, text)
	}
	return answer, string(text)
}

// client neither compresses nor reuses connections, which a test of leaks would count.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true,
	DisableKeepAlives: true}}

// startRunner serves an emulated runner of the models m and n.
func startRunner(t testing.TB, edit ...func(*emulator.Config)) string {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile, c.Models = emulator.Instant, []string{"m", "n"}
	for _, e := range edit {
		e(&c)
	}
	r, err := emulator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// startEngine serves a handler as a runner.
func startEngine(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// raw is a raw connection to the service.
type raw struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// of returns the service for another test.
func (s *service) of(t testing.TB) *service {
	other := *s
	other.t = t
	return &other
}

func (s *service) dial() *raw {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return &raw{s.t, c, bufio.NewReader(c)}
}

// CloseWrite closes the sending side.
func (c *raw) CloseWrite() { _ = c.Conn.(*net.TCPConn).CloseWrite() }

func (c *raw) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// status reads an answer and returns its status; 0: the connection was closed.
func (c *raw) status() int {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		if timeout, is := err.(net.Error); is && timeout.Timeout() {
			c.t.Fatal("no answer, and the connection remains open")
		}
		return 0
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}
