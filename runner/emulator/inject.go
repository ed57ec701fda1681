package emulator

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// meetFate draws the fate of a request and acts out what comes before the
// answer. It returns the failure to answer with, if that is the fate, and the
// writer to answer through. Where the fate is no answer at all it does not
// return, but ends the handler as net/http lets one.
func (s *Server) injectFault(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *failure) {
	fate, wait := s.injector.draw()
	if wait > 0 && !sleep(r.Context(), wait) {
		panic(http.ErrAbortHandler)
	}
	if fate == noFault {
		return w, nil
	}
	faults := s.injector.current()
	switch fate {
	case tooManyRequests:
		return w, shed(http.StatusTooManyRequests, runner.CodeRateLimited,
			"Rate limit reached (injected fault).", time.Duration(faults.RetryAfter))
	case unavailable:
		return w, shed(http.StatusServiceUnavailable, "unavailable",
			"The runner is overloaded (injected fault).", time.Duration(faults.RetryAfter))
	case serverError:
		return w, shed(http.StatusInternalServerError, "internal_error",
			"The runner failed (injected fault).", 0)
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
		const page = "<html><body>It works!</body></html>\n"
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		io.WriteString(w, page)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	return &cutWriter{ResponseWriter: w}, nil
}

// hangUp resets the connection and ends the handler.
func resetConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// wholeEvents is how many events a stream gets out before it is cut.
const eventsBeforeCut = 9

// cutWriter hangs up halfway through a body, or through an event of a stream.
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
	http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
