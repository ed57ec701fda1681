package e2e

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	invalid "github.com/pb33f/libopenapi-validator/errors"

	"github.com/tidefill/tidefill/api/openapi"
)

// description decides whether an exchange follows the OpenAPI description of the API.
var description = sync.OnceValues(func() (validator.Validator, error) {
	document, err := openapi.JSON("test")
	if err != nil {
		return nil, err
	}
	parsed, err := libopenapi.NewDocument(document)
	if err != nil {
		return nil, fmt.Errorf("parse the description: %w", err)
	}
	v, faults := validator.NewValidator(parsed)
	if faults != nil {
		return nil, fmt.Errorf("read the description: %v", faults)
	}
	return v, nil
})

// Described is a transport that compares what passes between a client and a daemon with the
// description: every answer, and every request that was accepted. Streams pass as they come. The
// test of the daemon fails if something differs.
type Described struct{ http.RoundTripper }

// The clients of tests and of the Go SDK use the default client, unless they have one of their own.
func init() { http.DefaultClient.Transport = Described{http.DefaultTransport} }

// described holds the daemons whose exchanges are compared, by the hosts of their URLs.
var described sync.Map

// maxCompared limits the bytes of a body that is compared.
const maxCompared = 1 << 20

// RoundTrip implements http.RoundTripper.
func (d Described) RoundTrip(r *http.Request) (*http.Response, error) {
	known, found := described.Load(r.URL.Host)
	if !found || r.Method == http.MethodHead { // which the description has only in words
		return d.RoundTripper.RoundTrip(r)
	}
	sent, err := jsonBody(r)
	if err != nil {
		return nil, err
	}
	if r.Body != nil && r.GetBody == nil && sent != nil {
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answer, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	e := exchange{known.(*Daemon), r, sent, answer.StatusCode, answer.Header.Clone()}
	if !isJSON(answer.Header) {
		e.compare(nil)
		return answer, nil
	}
	answer.Body = &readAlong{ReadCloser: answer.Body, end: e.compare}
	return answer, nil
}

// CloseIdleConnections does so, as http.Client expects of its transport.
func (d Described) CloseIdleConnections() {
	if t, is := d.RoundTripper.(*http.Transport); is {
		t.CloseIdleConnections()
	}
}

// jsonBody returns the JSON of a request; nil: it has none, or it is large.
func jsonBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || !isJSON(r.Header) || r.ContentLength < 1 || r.ContentLength > maxCompared {
		return nil, nil
	}
	body := r.Body
	if r.GetBody != nil {
		var err error
		if body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	defer body.Close()
	return io.ReadAll(body)
}

func isJSON(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media == "application/json"
}

// readAlong keeps what is read of a body, and passes it on at its end.
type readAlong struct {
	io.ReadCloser
	read bytes.Buffer
	end  func(body []byte)
}

func (b *readAlong) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read.Len() <= maxCompared {
		b.read.Write(p[:n])
	}
	if err == io.EOF && b.end != nil && b.read.Len() <= maxCompared {
		b.end(b.read.Bytes())
		b.end = nil
	}
	return n, err
}

// exchange is a request and its answer.
type exchange struct {
	daemon  *Daemon
	request *http.Request
	sent    []byte
	status  int
	header  http.Header
}

// compare notes what is not as described. body is that of the answer; nil: it is not JSON.
func (e exchange) compare(body []byte) {
	v, err := description()
	if err != nil {
		e.daemon.undescribed("the description", err.Error())
		return
	}
	at := *e.request.URL
	if strings.HasPrefix(at.Path, "/v1/models/") {
		at.Path, at.RawPath = "/v1/models/name", "" // a name may have slashes
	}
	request := &http.Request{Method: e.request.Method, URL: &at, Header: e.request.Header,
		Host: at.Host}
	with := func(body []byte) *http.Request { // for each part, since bodies are read once
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return request
	}
	answer := &http.Response{StatusCode: e.status, Header: e.header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: request}
	_, faults := v.GetResponseBodyValidator().ValidateResponseBody(with(e.sent), answer)
	if e.status/100 == 2 {
		p := v.GetParameterValidator()
		checks := []func(*http.Request) (bool, []*invalid.ValidationError){p.ValidatePathParams,
			p.ValidateQueryParams, p.ValidateHeaderParams, p.ValidateSecurity}
		if e.sent != nil {
			checks = append(checks, v.GetRequestBodyValidator().ValidateRequestBody)
		}
		for _, check := range checks {
			_, more := check(with(e.sent))
			faults = append(faults, more...)
		}
	}
	for _, f := range faults {
		if e.status >= 400 && (f.IsPathMissingError() || f.IsOperationMissingError()) {
			continue // it is refused, as it must be
		}
		what := f.Reason
		for _, of := range f.SchemaValidationErrors {
			what += fmt.Sprintf(" %s: %s.", of.FieldPath, of.Reason)
		}
		e.daemon.undescribed(what, fmt.Sprintf("%s %s: %s: %s\nsent %.500s\ngot %d %.500s",
			e.request.Method, e.request.URL.Path, f.Message, what, e.sent, e.status, body))
	}
}

// undescribed notes what is not as described, with one example of each kind.
func (d *Daemon) undescribed(kind, example string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.differences == nil {
		d.differences = make(map[string]string)
	}
	d.differences[kind] = example
}

// compareExchanges compares the exchanges with the daemon until the test ends.
func (d *Daemon) compareExchanges(t testing.TB) {
	described.Store(d.Listen, d)
	t.Cleanup(func() {
		described.CompareAndDelete(d.Listen, d)
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, kind := range slices.Sorted(maps.Keys(d.differences)) {
			t.Errorf("not as /openapi.json describes: %s", d.differences[kind])
		}
	})
}

// DescribedURL returns a URL at which other programs reach the daemon through a Described. A server
// that the test has not started as a daemon has its own URL only.
func (d *Daemon) DescribedURL() string {
	if d.t == nil {
		return d.URL
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proxy != nil {
		return d.proxy.URL
	}
	to, err := url.Parse(d.URL)
	if err != nil {
		d.t.Fatal(err)
	}
	d.proxy = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     Described{&http.Transport{DisableCompression: true}},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		// The client sees a connection that ends, as it does without the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
	})
	d.t.Cleanup(d.proxy.Close)
	return d.proxy.URL
}
