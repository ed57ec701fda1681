package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	length       int64 // of body; -1: unknown
	contentType  string
	idempotent   bool // sends a key, so that a repetition has no second effect
}

// plainToTLS is what a server of net/http answers to a request without TLS.
const plainToTLS = "Client sent an HTTP request to an HTTPS server"

// send returns an answer of status 2xx. The caller closes its body.
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
	if c.tenant != "" {
		r.Header.Set("Tidefill-Tenant", c.tenant)
	}
	if q.idempotent {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
			return nil, fmt.Errorf("connect to %s: %w; is the daemon running?", c.server, dial)
		}
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	err = readError(answer)
	if strings.HasPrefix(c.server, "http://") && strings.Contains(err.Error(), plainToTLS) {
		return nil, fmt.Errorf("%s serves https only; write https://%s", c.server,
			strings.TrimPrefix(c.server, "http://"))
	}
	return nil, err
}

// call sends a request and decodes the JSON value of the answer.
func (c *Client) call(ctx context.Context, q request, into any) error {
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
	return c.call(ctx, request{
		method: http.MethodPost, path: path, idempotent: true,
		body: bytes.NewReader(encoded), length: int64(len(encoded)),
		contentType: "application/json",
	}, into)
}
