package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// stallTimeout is how long a body may stand still. There is no limit on the whole: 200 MB over a thin line take their
	// time.
	stallTimeout = time.Minute
)

// newHTTPServer returns a server that gives slow clients their time and stalled ones none.
func newHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           progressing(handler, stallTimeout),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that break off, mostly
	}
}

// serveUntil serves until ctx ends, then gives requests under way the time of drain.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, drain time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err := shutdown(ctx, server, drain)
	<-ended
	return err
}

// shutdown lets requests under way finish within drain and cuts off the rest. That some were cut off is no error.
func shutdown(ctx context.Context, server *http.Server, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// progressing ends answers whose reader stands still for the time of stall, and requests whose body takes longer than that;
// a handler of forms, which may be large, minds their progress itself.
func progressing(next http.Handler, stall time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// A connection keeps its deadlines from one request to the next.
		if control.SetWriteDeadline(time.Time{}) != nil {
			next.ServeHTTP(w, r) // no connection of a server's, as in tests
			return
		}
		if r.ContentLength != 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			control.SetReadDeadline(time.Now().Add(stall))
			r.Body = &boundedBody{r.Body, control}
		}
		out := &progressWriter{w, control, stall}
		defer out.extend() // what is buffered goes out after the handler
		next.ServeHTTP(out, r)
	})
}

// boundedBody lifts the deadline at its end: the server reads on to notice a client that leaves, and that may last as long
// as the answer.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

type progressWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (w *progressWriter) extend() { w.control.SetWriteDeadline(time.Now().Add(w.stall)) }

func (w *progressWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

func (w *progressWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

func (w *progressWriter) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController.
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
