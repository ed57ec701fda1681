package emulator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// maxBody bounds a request body, in bytes.
const maxBody = 64 << 20

// route is an inference route: how its body is read and its response written.
type route struct {
	read  func(*inference) ([]prompt, *failure)
	reply reply
}

// reply writes the response of a route.
type reply interface {
	// whole returns the body of a response that is not streamed.
	whole(*answer) []byte
}

// streamReply writes a response as server-sent events. Each method returns the events to send.
type streamReply interface {
	reply
	open(*answer) []byte
	delta(a *answer, index, from, to int) []byte
	close(*answer) []byte
}

// infer serves an inference request, or injects a fault.
func (s *Server) infer(w http.ResponseWriter, r *http.Request, to route) {
	id := r.Header.Get("X-Request-Id")
	if !isPlainID(id) {
		id = "req-" + strconv.FormatUint(mix(s.config.Seed+s.serial.Add(1)), 16)
	}
	w.Header().Set("X-Request-Id", id)
	raw, f := readBody(w, r)
	if f != nil {
		f.write(w)
		return
	}
	entry := s.ledger.receive(raw)
	defer entry.close()
	w, f = s.injectFault(w, r)
	if f == nil {
		f = s.tenants.admit(r.Header.Get(runner.HeaderTenant), time.Now())
	}
	var req *inference
	if f == nil {
		req, f = s.parse(raw, r.Header, to)
	}
	whole := false
	if f == nil {
		a := &answer{inference: req, id: id, created: time.Now(), modelJSON: s.models[req.Model]}
		whole, f = s.answer(w, r, a, to.reply)
	}
	switch {
	case whole:
		entry.finish(http.StatusOK)
	case f != nil && r.Context().Err() == nil: // the client is still there
		f.write(w)
		if f.raw == nil {
			entry.finish(f.status)
		}
	}
}

// readBody reads a body into one allocation if its length is known.
func readBody(w http.ResponseWriter, r *http.Request) (raw []byte, f *failure) {
	var err error
	if n := r.ContentLength; n >= 0 && n <= maxBody {
		raw = make([]byte, n)
		_, err = io.ReadFull(r.Body, raw)
	} else {
		raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	if err == nil {
		return raw, nil
	}
	f = badRequest("", "The body could not be read: %v.", err)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		f.status, f.body.Code = http.StatusRequestEntityTooLarge, "request_too_large"
	}
	return nil, f
}

// isPlainID reports whether an id needs no escaping in a header and in JSON.
func isPlainID(id string) bool {
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' ||
			c == '_' || c == '.') {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// sleep waits for d and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
