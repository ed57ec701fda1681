package httpserver

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
)

const (
	// maxWrite is the number of bytes written under one deadline.
	maxWrite = 64 << 10
	// discardTimeout bounds the time to read the rest of a body that the handler did not read.
	discardTimeout = time.Second
	// maxDiscard limits the bytes of such a rest, as net/http does where it reuses the connection.
	maxDiscard = 256 << 10
)

// exchange is a request and its answer under the limits of a server. It is the
// http.ResponseWriter of the handler.
//
// A handler may set its own deadlines with an http.ResponseController. Setting the read deadline to
// zero removes the limit on the time of the body; the limit on its rate remains.
type exchange struct {
	http.ResponseWriter
	server  *Server
	control *http.ResponseController
	cancel  context.CancelCauseFunc // ends the request's context
	client  context.Context         // ends with the client's side of the connection; nil: unused
	follows bool                    // the request's context ends with client

	read, write deadline
	body        *body  // nil: the request has none
	last        bool   // the connection closes after the answer
	asks        bool   // the client sends its body only after an answer to Expect
	out         budget // of the answer
	began       bool   // the answer's header is written
}

// limitTransfers limits the time of every request that next handles.
func (s *Server) limitTransfers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// A connection keeps its deadline from one request to the next.
		if control.SetWriteDeadline(time.Time{}) != nil {
			next.ServeHTTP(w, r) // not a connection of a server, as in tests
			return
		}
		x := &exchange{
			ResponseWriter: w, server: s, control: control,
			read: deadline{set: control.SetReadDeadline}, write: deadline{
				set: control.SetWriteDeadline},
			out: newBudget(s.config.MinRate, s.config.Grace), last: r.Close,
			asks: r.Header.Get("Expect") != "",
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

// context returns the context of a request. With HalfClose it outlives the client's sending side:
// net/http cannot distinguish a client that has closed it from one that is gone. The context of a
// stream still ends with it, because a stream with nothing to send does not notice that its client
// is gone.
func (x *exchange) context(r *http.Request) (context.Context, func()) {
	if !x.server.options.HalfClose || r.ProtoMajor != 1 { // HTTP/2 distinguishes them
		x.cancel = func(error) {}
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(x.server.base, func() { cancel(http.ErrServerClosed) })
	x.cancel, x.client = cancel, r.Context()
	return ctx, func() { stop(); cancel(nil) }
}

// WriteHeader begins the answer. The rest of the request's body is discarded.
func (x *exchange) WriteHeader(code int) {
	if code >= 200 && !x.began {
		x.began = true
		x.discard()
		if isStream(x.Header()) {
			x.endWithClient()
		}
	}
	x.ResponseWriter.WriteHeader(code)
}

// discard limits the time in which the server reads the rest of the body. After a failed body it
// closes the connection.
func (x *exchange) discard() {
	switch {
	case x.body == nil || x.body.ended.Load():
	case x.body.failed.Load():
		x.Header().Set("Connection", "close")
		_ = x.read.transfer(time.Now())
	default:
		_ = x.read.transfer(time.Now().Add(discardTimeout))
	}
}

// discardLast reads the rest of the body of the last request of a connection. net/http would close
// the connection with the rest unread. That resets it, and a client that still sends may not see
// the answer. The handler has returned, so nobody else reads the body.
func (x *exchange) discardLast() {
	if !x.last || x.asks || x.body == nil || x.body.ended.Load() || x.body.failed.Load() {
		return
	}
	_ = x.read.transfer(time.Now().Add(discardTimeout))
	_, _ = io.CopyN(io.Discard, x.body.ReadCloser, maxDiscard)
}

// EndWithClient makes the context of a request end when the client closes its sending side, as that
// of a stream does. w is the handler's writer, or one that unwraps to it. It is for work that is
// too dear to be done for a client that has gone.
func EndWithClient(w http.ResponseWriter) {
	for w != nil {
		if x, ours := w.(*exchange); ours {
			x.endWithClient()
			return
		}
		wrapper, is := w.(interface{ Unwrap() http.ResponseWriter })
		if !is {
			return
		}
		w = wrapper.Unwrap()
	}
}

// endWithClient ends the request's context with the client's side of the connection.
func (x *exchange) endWithClient() {
	if x.client != nil && !x.follows {
		x.follows = true
		context.AfterFunc(x.client, func() { x.cancel(context.Canceled) })
	}
}

func isStream(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "text/event-stream"
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (written int, err error) {
	if !x.began {
		x.WriteHeader(http.StatusOK)
	}
	for {
		part := p[written:min(len(p), written+maxWrite)]
		n, err := x.timed(len(part), func() (int, error) { return x.ResponseWriter.Write(part) })
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// FlushError implements flushing for http.ResponseController.
func (x *exchange) FlushError() error {
	if !x.began {
		x.WriteHeader(http.StatusOK)
	}
	_, err := x.timed(0, func() (int, error) { return 0, x.control.Flush() })
	return err
}

// Flush implements http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// timed runs a write of up to n bytes within the answer's budget.
func (x *exchange) timed(n int, write func() (int, error)) (int, error) {
	start := time.Now()
	_ = x.write.extend(start, start.Add(x.out.left+x.out.worth(n)))
	n, err := write()
	x.out.spend(time.Since(start), n)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			x.server.metrics.slow("answer")
		}
		x.cancel(err)
	}
	return n, err
}

// finish limits the time in which the server sends and reads what remains after the handler.
func (x *exchange) finish() {
	x.discardLast()
	x.read.end()
	x.write.end()
	if !x.began {
		x.discard()
	}
	_ = x.write.transfer(time.Now().Add(x.server.config.Grace + discardTimeout))
}

// SetReadDeadline sets the handler's deadline for reading the body. Zero removes the limit on the
// time of the body.
func (x *exchange) SetReadDeadline(until time.Time) error { return x.read.handle(until) }

// SetWriteDeadline sets the handler's deadline for writing the answer.
func (x *exchange) SetWriteDeadline(until time.Time) error { return x.write.handle(until) }

// Unwrap implements access to the connection for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
