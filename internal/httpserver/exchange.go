package httpserver

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxWrite is how much is written under one deadline.
	maxWrite = 64 << 10
	// discardTimeout is how long the rest of a body may take that no handler has read. The server
	// reads up to 256 KiB of it to keep the connection.
	discardTimeout = time.Second
)

// exchange is a request and its answer under the bounds of a server. It is the http.ResponseWriter
// that handlers get.
//
// A handler may set deadlines of its own by an http.ResponseController. Setting the read deadline
// to zero lifts the bound on the time of the whole body and leaves that on its rate.
type exchange struct {
	http.ResponseWriter
	server  *Server
	control *http.ResponseController
	gone    context.CancelCauseFunc // ends the request's context
	left    context.Context         // ends when the client's side of the connection does

	read, write deadline
	body        *body  // nil: the request has none
	out         budget // of the answer
	begun       bool
}

// deadline joins the deadline of a transfer with that of the handler. A handler may move its own
// while a transfer is under way.
type deadline struct {
	mu     sync.Mutex
	set    func(time.Time) error
	own    time.Time // the handler's; zero: none
	lifted bool      // the handler has said so
	over   bool      // the handler has returned: its deadline is nobody's
}

// transfer sets the deadline of a transfer.
func (d *deadline) transfer(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.own.IsZero() && d.own.Before(until) {
		until = d.own
	}
	return d.set(until)
}

// handle sets the handler's deadline, at once for a transfer under way.
func (d *deadline) handle(own time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil
	}
	d.own = own
	if d.lifted = own.IsZero(); d.lifted {
		return nil
	}
	return d.set(own)
}

// end makes the handler's deadline void.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.own = true, time.Time{}
}

func (d *deadline) isLifted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lifted
}

// exchanging bounds every request that next handles.
func (s *Server) exchanging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// a connection keeps its deadline from one request to the next
		if control.SetWriteDeadline(time.Time{}) != nil {
			next.ServeHTTP(w, r) // no connection of a server's, as in tests
			return
		}
		x := &exchange{
			ResponseWriter: w, server: s, control: control,
			read: deadline{set: control.SetReadDeadline}, write: deadline{
				set: control.SetWriteDeadline},
			out: newBudget(s.config.MinRate, s.config.Grace),
		}
		ctx, end := x.context(r)
		defer end()
		r = r.WithContext(ctx)
		if r.ContentLength != 0 {
			x.body = &body{ReadCloser: r.Body, exchange: x, in: newBudget(
				s.config.MinRate, s.config.Grace)}
			r.Body = x.body
		}
		defer x.finish() // also of a handler that panics
		next.ServeHTTP(x, r)
	})
}

// context returns the context of a request. With HalfClose it outlives the client's sending side,
// which looks to the server like a client that is gone; a stream follows the client all the same,
// since a gone client may stay unnoticed for as long as it has nothing to send.
func (x *exchange) context(r *http.Request) (context.Context, func()) {
	if !x.server.options.HalfClose || r.ProtoMajor != 1 { // HTTP/2 distinguishes the two
		x.gone = func(error) {}
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(x.server.base, func() { cancel(http.ErrServerClosed) })
	x.gone, x.left = cancel, r.Context()
	return ctx, func() { stop(); cancel(nil) }
}

// WriteHeader begins the answer. Whatever the handler has not read of the body by then it doesn't
// want.
func (x *exchange) WriteHeader(code int) {
	if code >= 200 && !x.begun {
		x.begun = true
		x.discard()
		if isStream(x.Header()) && x.left != nil {
			context.AfterFunc(x.left, func() { x.gone(context.Canceled) })
		}
	}
	x.ResponseWriter.WriteHeader(code)
}

// discard bounds the time of what the server reads of an unread body. After a body that failed
// there is nothing to read, nor another request.
func (x *exchange) discard() {
	switch {
	case x.body == nil || x.body.ended:
	case x.body.failed:
		x.Header().Set("Connection", "close")
		x.read.transfer(time.Now())
	default:
		x.read.transfer(time.Now().Add(discardTimeout))
	}
}

func isStream(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "text/event-stream"
}

func (x *exchange) Write(p []byte) (written int, err error) {
	if !x.begun {
		x.WriteHeader(http.StatusOK)
	}
	for {
		part := p[written:min(len(p), written+maxWrite)]
		n, err := x.writing(len(part), func() (int, error) { return x.ResponseWriter.Write(part) })
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// FlushError is for http.ResponseController.
func (x *exchange) FlushError() error {
	if !x.begun {
		x.WriteHeader(http.StatusOK)
	}
	_, err := x.writing(0, func() (int, error) { return 0, x.control.Flush() })
	return err
}

func (x *exchange) Flush() { _ = x.FlushError() }

// writing does a write of up to n bytes within the answer's budget.
func (x *exchange) writing(n int, write func() (int, error)) (int, error) {
	begun := time.Now()
	x.write.transfer(begun.Add(x.out.left + x.out.worth(n)))
	n, err := write()
	x.out.spend(time.Since(begun), n)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			x.server.metrics.slow("answer")
		}
		x.gone(err)
	}
	return n, err
}

// finish bounds the time of what the server sends and reads after the handler.
func (x *exchange) finish() {
	x.read.end()
	x.write.end()
	if !x.begun {
		x.discard()
	}
	x.write.transfer(time.Now().Add(x.server.config.Grace + discardTimeout))
}

func (x *exchange) SetReadDeadline(until time.Time) error { return x.read.handle(until) }

func (x *exchange) SetWriteDeadline(until time.Time) error { return x.write.handle(until) }

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// body is a request's body, whose sender must keep the minimum rate.
type body struct {
	io.ReadCloser
	exchange *exchange
	in       budget
	begun    time.Time // the first read; zero: none yet
	ended    bool
	failed   bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.ended { // a deadline would now end the connection's next read
		return b.ReadCloser.Read(p)
	}
	now := time.Now()
	if b.begun.IsZero() {
		b.begun = now
	}
	until := now.Add(max(b.in.left, 0))
	if whole := b.begun.Add(b.exchange.server.config.BodyTimeout); whole.Before(until) &&
		!b.exchange.read.isLifted() {
		until = whole
	}
	b.exchange.read.transfer(until)
	n, err := b.ReadCloser.Read(p)
	b.in.spend(time.Since(now), n)
	b.ended, b.failed = err == io.EOF, err != nil && err != io.EOF
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.exchange.server.metrics.slow("body")
	}
	return n, err
}
