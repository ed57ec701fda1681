package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Carrier carries requests to a server in another way than by connections of the client.
type Carrier interface {
	// Carry sends a request and returns its answer, or the cause of the context's end. sent reports
	// that the server may have received the request. It may be called concurrently.
	Carry(r *http.Request, deadline time.Time) (answer *http.Response, sent bool, err error)
}

// carried is the transport of a Carrier.
type carried struct{ Carrier }

// roundTrip implements [transport].
func (c carried) roundTrip(r *http.Request, p *passage) (answer *http.Response, err error) {
	answer, p.sent, err = c.Carry(r, p.deadline)
	return answer, err
}

// CloseIdleConnections implements [transport]. A Carrier keeps nothing between requests.
func (carried) CloseIdleConnections() {}

// ForwardedRequest is a request that another client made.
type ForwardedRequest struct {
	Method string
	Path   string // beginning with /v1/
	Header http.Header
	Body   []byte
}

// Forward sends a request of another client as it is, and returns the answer before its body is
// read. What the client's configuration has in its header replaces that of the request. sent
// reports that the server may have received it.
func (c *Client) Forward(
	ctx context.Context, r ForwardedRequest,
) (answer *http.Response, sent bool, err error) {
	if !strings.HasPrefix(r.Path, "/v1/") {
		return nil, false, errors.New("the path of a forwarded request does not begin with /v1/")
	}
	target := *c.base
	target.Path += r.Path
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for key, values := range c.cfg.Header {
		header[http.CanonicalHeaderKey(key)] = values
	}
	if c.header.Get("Authorization") != "" {
		header["Authorization"] = c.header["Authorization"]
	}
	for {
		request, err := http.NewRequestWithContext(ctx, r.Method, target.String(), nil)
		if err != nil {
			return nil, false, err
		}
		request.Header = header.Clone()
		if len(r.Body) > 0 {
			request.Body, request.ContentLength = bodyOf(r.Body), int64(len(r.Body))
		}
		p := passage{}
		answer, err := c.transport.roundTrip(request, &p)
		if err == nil || p.sent || ctx.Err() != nil || !p.reused {
			return answer, p.sent, err
		}
	}
}

// bodyOf returns a body without GetBody, so that net/http sends it once.
func bodyOf(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }
