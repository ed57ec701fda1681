// Package client speaks the Files and Batches API for the command line. Files stream both ways:
// nothing of a batch's size is held in memory.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks one daemon. It may be used by many goroutines.
type Client struct {
	server string // without a slash at the end
	key    string
	http   *http.Client
}

// New returns a client of the daemon at server, http://host:port, with or without the /v1 of SDKs'
// base URLs. An empty key sends none.
func New(server, key string, trust Trust) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("server %q is no URL; write http://host:port or https://host:port",
			server)
	}
	trusted, err := trust.config()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       trusted,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
	}
	return &Client{
		server: strings.TrimSuffix(strings.TrimRight(server, "/"), "/v1"),
		key:    key,
		http:   &http.Client{Transport: transport},
	}, nil
}

// Server is the daemon's URL.
func (c *Client) Server() string { return c.server }

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is a refusal by the API.
type Error struct {
	Status    int    `json:"-"`
	Message   string `json:"message"`
	Type      string `json:"type"`
	Param     string `json:"param"`
	Code      string `json:"code"`
	RequestID string `json:"-"`
}

func (e *Error) Error() string {
	var what []string
	for _, part := range []struct{ name, value string }{{"param", e.Param}, {"code", e.Code},
		{"request", e.RequestID}} {
		if part.value != "" {
			what = append(what, part.name+" "+part.value)
		}
	}
	what = append(what, fmt.Sprintf("status %d", e.Status))
	message := e.Message
	if e.Status == http.StatusUnauthorized {
		message += " Set TIDEFILL_API_KEY to a key of this daemon."
	}
	return fmt.Sprintf("%s (%s)", message, strings.Join(what, ", "))
}

// Temporary tells whether asking again later may help: the daemon is away, busy or in trouble.
func Temporary(err error) bool {
	if refused := new(Error); errors.As(err, &refused) {
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// request is one question to the API.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	length       int64 // of body; -1: unknown
	contentType  string
	once         bool // carries a key by which the daemon knows it again
}

// send returns an answer of status 2xx, whose body the caller closes.
func (c *Client) send(ctx context.Context, q request) (*http.Response, error) {
	target := c.server + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, q.body)
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		r.ContentLength = q.length
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if q.once {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return nil, fmt.Errorf("reach %s: %w; is the daemon running there? See --server",
				c.server, dial)
		}
		if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
			return nil, fmt.Errorf(
				"trust %s: %w; give the authority of its certificate by --ca-file or TIDEFILL_CA_FILE", c.server, unknown)
		}
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, refusal(answer)
}

// refusal reads the error envelope, or makes do with what there is.
func refusal(answer *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	var envelope struct {
		Error *Error `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error == nil ||
		envelope.Error.Message == "" {
		envelope.Error = &Error{Message: fmt.Sprintf("%s answered %s: %.200q",
			answer.Request.URL.Path, answer.Status, body)}
	}
	envelope.Error.Status = answer.StatusCode
	envelope.Error.RequestID = answer.Header.Get("x-request-id")
	return envelope.Error
}

// ask sends a question whose answer is a JSON value.
func (c *Client) ask(ctx context.Context, q request, into any) error {
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read answer to %s %s: %w", q.method, q.path, err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.ask(ctx, request{
		method: http.MethodPost, path: path, once: true,
		body: bytes.NewReader(encoded), length: int64(len(encoded)),
		contentType: "application/json",
	}, into)
}
