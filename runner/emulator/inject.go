package emulator

import (
	"net"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// injectFault draws a request's fault and injects what happens before the response. It returns the
// failure to respond with, if that is the fault, and the writer for the response. If there is no
// response at all, it does not return but ends the handler with a panic that net/http recovers.
func (s *Server) injectFault(
	w http.ResponseWriter, r *http.Request,
) (http.ResponseWriter, *failure) {
	if s.injector.current().OnlyLow &&
		r.Header.Get(runner.HeaderPriority) != string(runner.PriorityLow) {
		return w, nil
	}
	fault, wait := s.injector.draw(time.Now())
	if wait > 0 && !sleep(r.Context(), wait) {
		panic(http.ErrAbortHandler)
	}
	if fault == noFault {
		return w, nil
	}
	faults := s.injector.current()
	switch fault {
	case tooManyRequests:
		return w, shed(http.StatusTooManyRequests, runner.CodeRateLimited,
			"Rate limit reached (injected fault).", time.Duration(faults.RetryAfter))
	case unavailable:
		return w, shed(http.StatusServiceUnavailable, "unavailable",
			"The runner is overloaded (injected fault).", time.Duration(faults.RetryAfter))
	case serverError:
		return w, shed(http.StatusInternalServerError, "internal_error",
			"The runner failed (injected fault).", 0)
	case unauthorized:
		return w, denied(http.StatusUnauthorized, "invalid_api_key",
			"Incorrect API key provided: sk-inj*****ault (injected fault).")
	case forbidden:
		return w, denied(http.StatusForbidden, "permission_denied",
			"You are not allowed to sample from this model (injected fault).")
	case loginPage:
		return w, &failure{status: http.StatusOK, raw: &rawBody{"text/html; charset=utf-8", login}}
	case empty:
		return w, &failure{status: http.StatusOK, raw: &rawBody{"application/json", ""}}
	case wrongJSON:
		return w, &failure{status: http.StatusOK, raw: &rawBody{"application/json",
			`{"status":"ok"}`}}
	case reset:
		resetConnection(w)
	case hang:
		if faults.HangFor > 0 {
			sleep(r.Context(), time.Duration(faults.HangFor))
		} else {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	case garbage:
		writeRaw(w, http.StatusOK, rawBody{"text/html", "<html><body>It works!</body></html>\n"})
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case noFault, cut:
	}
	return &cutWriter{ResponseWriter: w}, nil
}

// login is the page of LoginPage.
const login = `<!DOCTYPE html>
<html><head><title>Sign in</title></head>
<body><form method="post" action="/login">Sign in to continue.</form></body></html>
`

// resetConnection resets the connection and ends the handler.
func resetConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// eventsBeforeCut is how many events of a stream are sent before it is cut.
const eventsBeforeCut = 9

// cutWriter closes the connection in the middle of a body, or of an event of a stream.
type cutWriter struct {
	http.ResponseWriter
	events int
}

func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutWriter) Write(b []byte) (int, error) {
	if c.Header().Get("Content-Type") == eventStream && c.events < eventsBeforeCut {
		c.events++
		return c.ResponseWriter.Write(b)
	}
	c.ResponseWriter.Write(b[:len(b)/2])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
