// Package client is a Go client of Tidefill's Files and Batches API.
//
// The API is that of OpenAI with extensions, so any OpenAI SDK works too. This client adds the
// extensions: pause, resume and retry, results while a batch runs, progress, and the check that no
// line was lost. Files are streamed both ways: memory does not grow with the size of a batch.
//
// A typical program uploads a file, creates a batch, waits and downloads the results:
//
//	c, err := client.New(client.DefaultServer, client.Options{})
//	...
//	file, err := c.Upload(ctx, "requests.jsonl", in, -1)
//	...
//	b, err := c.CreateBatch(ctx, client.BatchRequest{InputFileID: file.ID,
//		Endpoint: "/v1/chat/completions", CompletionWindow: "24h"})
//	...
//	b, err = c.Watch(ctx, b.ID, nil)
//	...
//	names, err := c.Download(ctx, b, "results")
//
// An answer of the API with an error status is an *Error. Temporary reports whether a request may
// succeed later.
package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultServer is the URL of a daemon with the default configuration on this machine.
const DefaultServer = "http://127.0.0.1:8080"

// Client calls one daemon. It may be used concurrently.
type Client struct {
	server string // without a slash at the end
	key    string
	tenant string // empty: the key's own
	http   *http.Client
}

// Options configure a Client. The zero value has no key and trusts the system's authorities.
type Options struct {
	// APIKey is sent with every request. Empty: none.
	APIKey string
	// Tenant is the one for which a key with the role admin acts. Empty: the key's own.
	Tenant string
	// CAFile has authorities in PEM that may certify the daemon, besides the system's. Empty: none.
	CAFile string
	// CertFile and KeyFile are the client's own certificate in PEM, for daemons that require one.
	// Empty: none.
	CertFile, KeyFile string
}

// New returns a client of the daemon at server, such as http://127.0.0.1:8080. A base URL for SDKs,
// which ends in /v1, works too.
func New(server string, options Options) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("server %q is not a URL; write http://host:port or "+
			"https://host:port", server)
	}
	tlsConfig, err := options.tls()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
	}
	return &Client{
		server: strings.TrimSuffix(strings.TrimRight(server, "/"), "/v1"),
		key:    options.APIKey,
		tenant: options.Tenant,
		http:   &http.Client{Transport: transport},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// sleep waits, or returns the error of ctx when it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
