package s3

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// Fault is something that a Proxy does instead of passing a request on.
type Fault int

// Faults of a proxy.
const (
	None         Fault = iota
	Error              // 500 InternalError; the storage does not get the request
	SlowDown           // 503 SlowDown; the storage does not get the request
	Stall              // no answer; the storage does not get the request
	Lost               // the storage gets the request; the connection ends without its answer
	CutRequest         // the connection ends in the middle of the request's body
	CutResponse        // the connection ends in the middle of the answer's body
	StallRequest       // the storage gets the request; its answer stalls in the middle
	NoDirectory        // 409 ExistingObjectIsDirectory; the storage does not get the request
	faults
)

// AllFaults lists all faults.
func AllFaults() []Fault {
	var all []Fault
	for f := None + 1; f < faults; f++ {
		all = append(all, f)
	}
	return all
}

// Proxy passes requests on to a server, or fails.
type Proxy struct {
	URL    string
	choose atomic.Pointer[func(*http.Request) Fault]
	failed atomic.Int64
}

// StartProxy starts a proxy in front of a server. It passes everything on at first, and ends with
// the test.
func StartProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{}
	ending, end := context.WithCancel(context.Background())
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
			r.Out.Header["Accept-Encoding"] = r.In.Header["Accept-Encoding"]
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
	}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := None
		if choose := p.choose.Load(); choose != nil {
			fault = (*choose)(r)
		}
		if fault != None {
			p.failed.Add(1)
		}
		p.serve(ending, reverse, fault, w, r)
	}))
	t.Cleanup(func() {
		end()
		listening.CloseClientConnections()
		listening.Close()
	})
	p.URL = listening.URL
	return p
}

// Choose has the proxy ask for the fault of each request; nil: none.
func (p *Proxy) Choose(choose func(*http.Request) Fault) {
	if choose == nil {
		p.choose.Store(nil)
	} else {
		p.choose.Store(&choose)
	}
}

// Failed returns the number of requests that had a fault.
func (p *Proxy) Failed() int64 { return p.failed.Load() }

func (p *Proxy) serve(
	ending context.Context, next http.Handler, fault Fault, w http.ResponseWriter, r *http.Request,
) {
	switch fault {
	case Error:
		answer(w, http.StatusInternalServerError, "InternalError")
	case SlowDown:
		answer(w, http.StatusServiceUnavailable, "SlowDown")
	case NoDirectory:
		answer(w, http.StatusConflict, "ExistingObjectIsDirectory")
	case Stall:
		_, _ = io.Copy(io.Discard, r.Body)
		wait(ending, r)
		panic(http.ErrAbortHandler)
	case Lost:
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case CutRequest:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	case CutResponse, StallRequest:
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		for key, values := range recorder.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		if fault == StallRequest {
			wait(ending, r)
		}
		panic(http.ErrAbortHandler)
	default:
		next.ServeHTTP(w, r)
	}
}

// wait waits until the client gives up, or the test ends.
func wait(ending context.Context, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-ending.Done():
	}
}

func answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>injected</Message></Error>")
}
