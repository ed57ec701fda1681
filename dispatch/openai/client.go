// Package openai sends lines to an OpenAI-compatible model server.
//
// A [Client] has connections of its own to one server, so that a slow server delays no other.
// Bodies are sent and received byte for byte: no decoding, no compression, no redirects. An answer
// that is a stream is assembled without decoding: strings and numbers stay as the server wrote
// them.
//
// [Client.Send] posts the request (post), over plain TCP or net/http ([transport]), and reads the
// answer in one pass: into memory (readAnswer), into a file if it is large (Large.fill), or from a
// stream (readStream), which splits the bytes into events (events.next) and joins each event to the
// answer (assembly.add). The pass checks the JSON and finds the usage, so nothing is parsed again.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Config configures a client for one server.
type Config struct {
	// URL is the server's base, with or without the trailing /v1. Its user and password are sent as
	// basic authentication if neither APIKey nor Header has an Authorization.
	URL string
	// APIKey is sent as a bearer token; empty: none.
	APIKey string
	// Header is added to every request.
	Header http.Header
	// TenantHeaders are the headers that carry Request.Tenant.
	TenantHeaders []string
	// MaxAnswer limits an answer's body in bytes. MaxAnswerOf replaces it for single endpoints.
	MaxAnswer   int64
	MaxAnswerOf map[string]int64
	// Spool makes files for answers that do not fit in memory; nil: all are held in memory.
	Spool func(context.Context) (File, error)
	// DialTimeout limits the time to connect.
	DialTimeout time.Duration
	// Carrier carries the requests in the place of connections; nil: the client connects itself.
	Carrier Carrier
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	cfg       Config
	base      *url.URL
	header    http.Header
	transport transport
	echo      echo
	targets   sync.Map // path -> *url.URL
}

// New returns a client. It fails if Config.URL is no http or https URL.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("upstream url: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf(
			"upstream url %q: must look like http://host:port or http://host:port/v1",
			base.Redacted())
	}
	cfg.TenantHeaders = slices.Clone(cfg.TenantHeaders)
	for i, name := range cfg.TenantHeaders {
		cfg.TenantHeaders[i] = http.CanonicalHeaderKey(name)
	}
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	base.RawQuery, base.Fragment = "", ""
	header := http.Header{
		"Accept":       {"application/json"},
		"Content-Type": {"application/json"},
		"User-Agent":   {"tidefill"},
	}
	for key, values := range cfg.Header {
		header[http.CanonicalHeaderKey(key)] = values
	}
	if cfg.APIKey != "" {
		header.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	if base.User != nil && header.Get("Authorization") == "" { // only http.Client sends it
		password, _ := base.User.Password()
		(&http.Request{Header: header}).SetBasicAuth(base.User.Username(), password)
	}
	return &Client{cfg: cfg, base: base, header: header, transport: newTransport(cfg, base)}, nil
}

// Close closes the connections that are idle, and the others when they are. Requests in progress
// end as usual.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is one line to send.
type Request struct {
	Path string // of the endpoint, beginning with /v1/
	// NewBody returns a reader of the body's Size bytes, for each connection that is tried: a
	// FileBody if it is not in memory.
	NewBody func() io.ReadCloser
	Size    int64
	// ID is sent as x-request-id, so that the server's log and the result have the same id.
	ID string
	// Tenant is sent as Config.TenantHeaders.
	Tenant string
	// CacheTag is sent as X-Cache-Tag; empty: none is.
	CacheTag string
	// Traceparent is sent as traceparent; empty: none is.
	Traceparent string
	// Deadline orders the requests of a Carrier; zero: it has none.
	Deadline time.Time
	// Watch receives the tokens of an answer that the body asks to be streamed; nil: it does not
	// ask. A stream is assembled, so the Answer is the same as without streaming, or the error is
	// ErrNotAssembled.
	Watch *Watch
}

// errUnreachable reports that no connection took a byte of the request, so the server never saw it.
var errUnreachable = errors.New("unreachable")

// Headers of Request.CacheTag and Request.Traceparent.
const (
	cacheTagHeader    = "X-Cache-Tag"
	traceparentHeader = "Traceparent"
)

// headerFor returns the client's header with what differs from request to request.
func (s *Scratch) headerFor(c *Client, r Request) http.Header {
	if s.of != c {
		s.of, s.header, s.traced = c, make(http.Header, len(c.header)+4), false
		for key, values := range c.header {
			s.header[key] = values
		}
	}
	s.header["X-Request-Id"] = []string{r.ID}
	for _, name := range c.cfg.TenantHeaders {
		s.header[name] = []string{r.Tenant}
	}
	if r.CacheTag != "" {
		s.header[cacheTagHeader] = []string{r.CacheTag}
	} else {
		delete(s.header, cacheTagHeader)
	}
	if r.Traceparent != "" {
		s.header[traceparentHeader], s.traced = []string{r.Traceparent}, true
	} else if s.traced {
		delete(s.header, traceparentHeader)
		s.traced = false
	}
	return s.header
}

// Send posts a request and reads the whole answer.
func (c *Client) Send(ctx context.Context, r Request, scratch *Scratch) (Answer, error) {
	answer, err := c.send(ctx, r, scratch)
	if err != nil {
		scratch.of = nil // the transport may still be reading the header
	}
	return answer, err
}

func (c *Client) send(ctx context.Context, r Request, scratch *Scratch) (Answer, error) {
	response, p, err := c.post(ctx, r, scratch)
	if err != nil {
		return Answer{Sent: p.sent}, err
	}
	defer response.Body.Close()
	answer := Answer{
		Sent: true, Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header, time.Now()), Report: readReport(response.Header),
	}
	// HTTP/2 numbers its answers, so that its connections can't mix them up.
	if response.ProtoMajor < 2 && c.echo.foreign(r.ID, answer.RequestID, p.reused) {
		return Answer{Sent: true}, errMixedUp
	}
	if len(answer.RequestID) > maxRequestID {
		answer.RequestID = strings.ToValidUTF8(answer.RequestID[:maxRequestID], "")
	}
	switch {
	case response.StatusCode/100 != 2:
		answer.Body, err = readError(response, scratch)
		answer.Foreign = !isError(answer.Body)
	case r.Watch != nil && isStream(response.Header):
		err = c.readStream(r, response, scratch, &answer)
		answer.Report.readTrailer(response.Trailer)
	default:
		err = c.readAnswer(ctx, r.Path, response, scratch, &answer)
	}
	return answer, err
}

func (c *Client) maxAnswer(path string) int64 {
	if most, ok := c.cfg.MaxAnswerOf[path]; ok {
		return most
	}
	return c.cfg.MaxAnswer
}

// post sends the request and reads the head of the answer. A server may close an idle connection
// just before it is used: as long as no byte was accepted, post tries the next one. After that
// nobody knows what the server did with the request.
func (c *Client) post(
	ctx context.Context, r Request, scratch *Scratch,
) (*http.Response, passage, error) {
	target, err := c.target(r.Path)
	if err != nil {
		return nil, passage{}, err
	}
	for {
		req := (&http.Request{
			Method: http.MethodPost, URL: target, Host: target.Host,
			Header: scratch.headerFor(c, r),
			Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Body: r.NewBody(), ContentLength: r.Size,
		}).WithContext(ctx)
		// A round trip follows no redirects: a line goes only where the operator configured.
		p := &scratch.passage
		*p = passage{deadline: r.Deadline}
		response, err := c.transport.roundTrip(req, p)
		switch {
		case err == nil || p.sent || ctx.Err() != nil || errors.Is(err, ErrUnreadable):
			return response, *p, err
		case !p.reused:
			return nil, *p, fmt.Errorf("%w: %w", errUnreachable, err)
		}
		scratch.of = nil // net/http may still be reading the header
	}
}

// target returns the URL of an endpoint. Each is made once.
func (c *Client) target(path string) (*url.URL, error) {
	if known, ok := c.targets.Load(path); ok {
		return known.(*url.URL), nil
	}
	if _, ok := batchfile.LookupEndpoint(path); !ok {
		return nil, fmt.Errorf("%s is no endpoint of batch lines", path)
	}
	made := *c.base
	made.Path += path
	c.targets.Store(path, &made)
	return &made, nil
}

// retryAfter reads the time for which the server wants no requests: milliseconds, seconds or a
// date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if len(h["Retry-After"]) == 0 && len(h["Retry-After-Ms"]) == 0 {
		return 0 // as nearly always
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 &&
		!math.IsInf(ms, 1) {
		return clampWait(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return clampWait(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// clampWait limits a server's wish to a day. NaN, infinite and negative numbers are 0.
func clampWait(ns float64) time.Duration {
	if !(ns > 0) || math.IsInf(ns, 1) {
		return 0
	}
	return time.Duration(min(ns, float64(24*time.Hour)))
}
