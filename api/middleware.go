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
	// apiVersion is the only version that OpenAI's API ever announced.
	apiVersion = "2020-10-01"
)

// middleware does for every request what does not depend on its route: its id, its clock, its metrics
// and its sender.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		requestID := requestIDOf(r)
		h := w.Header()
		h.Set(requestIDHeader, requestID)
		h.Set("Openai-Version", apiVersion)
		out := &response{ResponseWriter: w, server: s, begun: begun}
		defer out.release()

		defer func() {
			elapsed := time.Since(begun)
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
			if fault == http.ErrAbortHandler {
				panic(fault)
			}
			s.log.ErrorContext(r.Context(), "request panicked", "request_id", requestID,
				"method", r.Method, "route", routeOf(r), "panic", fault, "stack", string(
					debug.Stack()))
			if out.code != 0 {
				// the answer has begun: only a broken connection tells the client
				panic(http.ErrAbortHandler)
			}
			writeError(out, answerTo(fmt.Errorf("panic: %v", fault)))
		}()

		sender, life, err := s.authenticate(r)
		if err != nil {
			writeError(out, answerTo(err))
			return
		}
		ctx, end := life.during(r.Context(), w)
		defer end()
		out.life = life
		r = r.WithContext(context.WithValue(ctx, principalKey{}, sender))
		if err := s.moveToGate(out, r, &s.gates.requests); err != nil {
			writeError(out, answerTo(err))
			return
		}
		next.ServeHTTP(out, r)
	})
}

// serve renders the error that h returns.
func (s *Server) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		if errors.Is(context.Cause(r.Context()), errRevoked) {
			err = errRevoked // whatever it broke
		}
		answer := answerTo(err)
		if answer.Status >= 500 {
			s.log.WarnContext(r.Context(), "request failed", "request_id", w.Header().Get(
				requestIDHeader),
				"method", r.Method, "route", routeOf(r), "tenant", tenantOf(r.Context()),
				"status", answer.Status, "error", err)
		}
		if out, ok := w.(*response); ok && out.code != 0 {
			panic(http.ErrAbortHandler)
		}
		writeError(w, answer)
	})
}

// routeOf is the pattern that matched, fit for a metric's label.
func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "unknown"
	}
	return r.Pattern
}

// requestIDOf is the client's own id if it is a sane one, else a new one.
func requestIDOf(r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	invisible := func(c rune) bool { return c <= ' ' || c > '~' }
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, invisible) {
		return newID(requestPrefix)
	}
	return id
}

// response notes the status of an answer and stamps the time it took to begin.
type response struct {
	http.ResponseWriter
	server *Server
	begun  time.Time
	code   int          // 0: not begun
	life   *keyLifetime // of the sender's key; nil: there are none
	places []func()     // give back what the request takes of the server's gates
}

// release gives back all places.
func (w *response) release() {
	for _, leave := range w.places {
		leave()
	}
	w.places = nil
}

func (w *response) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
		w.Header().Set("Openai-Processing-Ms", strconv.FormatInt(time.Since(w.begun).Milliseconds(),
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

// Unwrap lets an http.ResponseController flush and set deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
