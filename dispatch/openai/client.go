// Package openai sends lines to an OpenAI-compatible model server.
//
// A [Client] speaks to one server over connections of its own, so that a slow server never holds up
// another. Bodies go out and come back byte for byte: no decoding, no compression, no redirects.
// Plain HTTP takes a short way (wire.go). Only an answer that comes as a stream is put together
// (stream.go), again without decoding: its strings and numbers stand as the server wrote them.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Config says how to reach one server.
type Config struct {
	// URL is the server's base, with or without the trailing /v1.
	URL string
	// APIKey is sent as a bearer token; empty: none.
	APIKey string
	// Header is added to every request.
	Header http.Header
	// TenantHeader is the header that carries Request.Tenant; empty: none does.
	TenantHeader string
	// MaxAnswer bounds an answer's body in bytes, MaxAnswerOf those of some endpoints.
	MaxAnswer   int64
	MaxAnswerOf map[string]int64
	// Spool makes files for answers that memory can't hold; nil: all are held in memory.
	Spool func(context.Context) (File, error)
	// DialTimeout bounds the making of a connection.
	DialTimeout time.Duration
}

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	cfg       Config
	base      *url.URL
	header    http.Header
	transport transport
	echo      echo
	targets   sync.Map // path -> *url.URL
}

// New builds a client; it fails on a URL that can't be a server's.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("upstream url: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf(
			"upstream url %q: must look like http://host:port or http://host:port/v1", cfg.URL)
	}
	cfg.TenantHeader = http.CanonicalHeaderKey(cfg.TenantHeader)
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
	return &Client{cfg: cfg, base: base, header: header, transport: newTransport(cfg, base)}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is one line to send.
type Request struct {
	Path string // of the endpoint, beginning with /v1/
	// Body of Size bytes; NewBody is called for each connection that is tried.
	NewBody func() io.ReadCloser
	Size    int64
	// ID goes along as x-request-id, so that the server's log, its evictions and our result name
	// the same thing.
	ID string
	// Tenant goes along as Config.TenantHeader.
	Tenant string
	// Watch hears of the tokens of an answer that the body asks to have streamed; nil: it doesn't.
	// A stream is put together, so that the Answer is the same either way, or the error is
	// ErrUnjoined.
	Watch *Watch
}

// Errors of Send that callers tell apart; anything else means that the connection broke under way.
var (
	// ErrUnreachable: no connection took a byte of the request, so the server never saw it.
	ErrUnreachable = errors.New("unreachable")
)

// headerFor returns the client's header with room for what differs from line to line.
func (s *Scratch) headerFor(c *Client, r Request) http.Header {
	if s.of != c {
		s.of, s.header = c, make(http.Header, len(c.header)+2)
		for key, values := range c.header {
			s.header[key] = values
		}
	}
	s.header["X-Request-Id"] = []string{r.ID}
	if c.cfg.TenantHeader != "" {
		s.header[c.cfg.TenantHeader] = []string{r.Tenant}
	}
	return s.header
}

// Send posts a line and reads the whole answer. Its Body is a part of the scratch.
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
		RetryAfter: retryAfter(response.Header, time.Now()),
	}
	if c.echo.foreign(r.ID, answer.RequestID, p.reused) {
		return Answer{Sent: true}, errMixedUp
	}
	if len(answer.RequestID) > mostRequestID {
		answer.RequestID = strings.ToValidUTF8(answer.RequestID[:mostRequestID], "")
	}
	switch {
	case response.StatusCode/100 != 2:
		answer.Body, err = readError(response, scratch)
	case r.Watch != nil && isStream(response.Header):
		answer.Status, answer.Body, err = c.readStream(r, response, scratch)
	default:
		answer.Body, answer.Large, err = c.readAnswer(ctx, response, scratch, c.maxAnswer(r.Path))
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
// just when it is to be used: while no byte was accepted the next one is tried. After that nobody
// knows what the server did with the request.
func (c *Client) post(
	ctx context.Context, r Request, scratch *Scratch,
) (*http.Response, passage, error) {
	target, err := c.target(r.Path)
	if err != nil {
		return nil, passage{}, err
	}
	for {
		req := (&http.Request{
			Method: http.MethodPost, URL: target, Host: target.Host, Header: scratch.headerFor(
				c, r),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Body: r.NewBody(), ContentLength: r.Size,
		}).WithContext(ctx)
		// RoundTrip rather than a http.Client: redirects are not followed (a line goes where the
		// operator said, or nowhere).
		p := &scratch.passage
		*p = passage{}
		response, err := c.transport.roundTrip(req, p)
		switch {
		case err == nil || p.sent || ctx.Err() != nil:
			return response, *p, err
		case !p.reused:
			return nil, *p, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		scratch.of = nil // net/http may still be reading the header
	}
}

// target is the URL of an endpoint. The few there are get made once.
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

// retryAfter reads how long the server wants to be left alone: milliseconds, seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if len(h["Retry-After"]) == 0 && len(h["Retry-After-Ms"]) == 0 {
		return 0 // as nearly always
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
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

// clampWait keeps what a server asks for within a day, and NaN, infinities and negatives out.
func clampWait(ns float64) time.Duration {
	if !(ns > 0) {
		return 0
	}
	return time.Duration(min(ns, float64(24*time.Hour)))
}
