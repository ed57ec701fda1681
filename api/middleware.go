package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

const (
	requestIDHeader = "X-Request-Id"
	// apiVersion is the only version that OpenAI's API has announced.
	apiVersion = "2020-10-01"
)

// middleware does what every request needs, whatever its route: it sets the request's id, measures
// its time, counts it, recovers from panics and authenticates the sender.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		requestID := requestIDOf(r)
		h := w.Header()
		h.Set(requestIDHeader, requestID)
		h.Set("Openai-Version", apiVersion)
		out := &response{ResponseWriter: w, server: s, start: start}
		defer out.release()

		defer func() {
			elapsed := time.Since(start)
			route := routeOf(r)
			s.metrics.observe(route, r.Method, out.status(), elapsed)
			s.log.DebugContext(r.Context(), "request served", "request_id", requestID,
				"method", r.Method, "route", route, "status", out.status(), "elapsed", elapsed)
		}()
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if fault == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				panic(fault)
			}
			s.log.ErrorContext(r.Context(), "request panicked", "request_id", requestID,
				"method", r.Method, "route", routeOf(r), "panic", fault,
				"stack", string(debug.Stack()))
			if out.code != 0 {
				// the answer was partly sent: closing the connection is the only way to report it
				panic(http.ErrAbortHandler)
			}
			writeError(out, answerTo(fmt.Errorf("panic: %v", fault)))
		}()

		if r.URL.Path == descriptionURL { // nothing of anybody's, and clients read it without a key
			next.ServeHTTP(out, r)
			return
		}
		sender, life, err := s.authenticate(r)
		if err != nil {
			writeError(out, answerTo(err))
			return
		}
		ctx, end := life.during(r.Context(), w)
		defer end()
		out.life = life
		r = r.WithContext(context.WithValue(ctx, principalKey{}, sender))
		if err := s.limitRate(out, r); err != nil {
			writeError(out, answerTo(err))
			return
		}
		if !s.isInline(r) {
			if err := s.moveToGate(out, r, &s.gates.requests); err != nil {
				writeError(out, answerTo(err))
				return
			}
		}
		next.ServeHTTP(out, r)
	})
}

// serve returns a handler that sends the error that h returns, if any.
func (s *Server) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		if errors.Is(context.Cause(r.Context()), errRevoked) {
			err = errRevoked // the cause of whatever failed
		}
		answer := answerTo(err)
		if answer.Status >= 500 {
			s.log.WarnContext(r.Context(), "request failed",
				"request_id", w.Header().Get(requestIDHeader), "method", r.Method,
				"route", routeOf(r), "tenant", tenantOf(r.Context()),
				"status", answer.Status, "error", err)
		}
		if out, ok := w.(*response); ok && out.code != 0 {
			panic(http.ErrAbortHandler)
		}
		writeError(w, answer)
	})
}

// routeOf returns the pattern that the request matched, as a value of a metric's label.
func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "unknown"
	}
	return r.Pattern
}

// requestIDOf returns the id that the client has sent, if it is short and printable, or a new one.
func requestIDOf(r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	invisible := func(c rune) bool { return c <= ' ' || c > '~' }
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, invisible) {
		return newID(requestPrefix)
	}
	return id
}

// response records the status of an answer and sets the header with the time until its start.
type response struct {
	http.ResponseWriter
	server *Server
	start  time.Time
	code   int          // 0: not started
	life   *keyLifetime // of the sender's key; nil: there are no keys
	places []func()     // leave the gates that the request has entered
}

// release leaves all gates.
func (w *response) release() {
	for _, leave := range w.places {
		leave()
	}
	w.places = nil
}

func (w *response) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
		w.Header().Set("Openai-Processing-Ms", strconv.FormatInt(time.Since(w.start).Milliseconds(),
			10))
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *response) Write(p []byte) (int, error) {
	if w.code < 300 && w.life.isOver() {
		return 0, errRevoked
	}
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to flushing and deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
