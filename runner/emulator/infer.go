package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// maxBody bounds a request body, in bytes.
const maxBody = 64 << 20

// route is an inference route: how its body is read and its answer written.
type route struct {
	read  func(*job) ([]prompt, *failure)
	reply reply
}

// reply writes the answer of a route.
type reply interface {
	// whole is the body of an answer that is not streamed.
	whole(*answer) []byte
}

// streamReply writes an answer in server-sent events. Each method returns the
// events it adds, ready to be sent.
type streamReply interface {
	reply
	open(*answer) []byte
	delta(a *answer, index, from, to int) []byte
	close(*answer) []byte
}

// answer is what a request gets.
type answer struct {
	*job
	id        string // request id
	created   time.Time
	modelJSON []byte
	cached    int // prompt tokens of all sequences found in the cache
	events    int // events sent so far, for routes that number them
}

func (a *answer) promptTokens() (sum int) {
	for _, q := range a.sequences {
		sum += q.tokens
	}
	return sum
}

func (a *answer) outputTokens() (sum int) {
	for _, q := range a.sequences {
		sum += q.output
	}
	return sum
}

// infer serves an inference request, or the fault that befalls it.
func (s *Server) infer(w http.ResponseWriter, r *http.Request, to route) {
	id := r.Header.Get("X-Request-Id")
	if !plain(id) {
		id = "req-" + strconv.FormatUint(mix(s.config.Seed+s.serial.Add(1)), 16)
	}
	w.Header().Set("X-Request-Id", id)
	raw, err := readBody(w, r)
	if err != nil {
		var large *http.MaxBytesError
		f := badRequest("", "The body could not be read: %v.", err)
		if errors.As(err, &large) {
			f.status, f.body.Code = http.StatusRequestEntityTooLarge, "request_too_large"
		}
		f.write(w)
		return
	}
	status, whole := 0, false
	closeEntry := s.ledger.receive(raw)
	defer func() { closeEntry(status, whole) }()

	fate, wait := s.ill.request()
	if wait > 0 && !sleep(r.Context(), wait) {
		return
	}
	f := s.meet(w, r, fate)
	var j *job
	switch {
	case fate == garbage:
		return
	case fate == cut:
		w = &cutWriter{ResponseWriter: w}
	}
	if f == nil {
		f = s.tenants.admit(r.Header.Get(runner.HeaderTenant), time.Now())
	}
	if f == nil {
		j, f = s.parse(raw, r.Header, to)
	}
	if f != nil {
		status, whole = f.status, true
		f.write(w)
		return
	}
	status = http.StatusOK
	a := &answer{job: j, id: id, created: time.Now(), modelJSON: s.models[j.Model]}
	if s.plant == nil {
		whole = s.answerAtOnce(w, a, to.reply)
		return
	}
	whole, f = s.answer(w, r, a, to.reply)
	if f != nil {
		status, whole = f.status, r.Context().Err() == nil
		f.write(w)
	}
}

// readBody reads a body into one allocation where its length is known.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n >= 0 && n <= maxBody {
		raw := make([]byte, n)
		_, err := io.ReadFull(r.Body, raw)
		return raw, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}

// plain says whether an id can stand in a header and in JSON as it is.
func plain(id string) bool {
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// meet acts out a fate that is decided before the request is looked at. It
// returns the failure to answer with, if that is the fate; fates that end the
// connection do not return.
func (s *Server) meet(w http.ResponseWriter, r *http.Request, f fate) *failure {
	faults := s.ill.inForce()
	switch f {
	case tooManyRequests:
		return shed(http.StatusTooManyRequests, runner.CodeRateLimited, "Rate limit reached (injected fault).", time.Duration(faults.RetryAfter))
	case unavailable:
		return shed(http.StatusServiceUnavailable, "unavailable", "The runner is overloaded (injected fault).", time.Duration(faults.RetryAfter))
	case serverError:
		return shed(http.StatusInternalServerError, "internal_error", "The runner failed (injected fault).", 0)
	case reset:
		hangUp(w)
	case hang:
		ctx := r.Context()
		if faults.HangFor > 0 {
			sleep(ctx, time.Duration(faults.HangFor))
		} else {
			<-ctx.Done()
		}
		panic(http.ErrAbortHandler)
	case garbage:
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html><body>It works!</body></html>\n")
	}
	return nil
}

// hangUp resets the connection and ends the handler.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// cutWriter hangs up halfway through a body, or after the tenth event of a
// stream.
type cutWriter struct {
	http.ResponseWriter
	writes int
}

func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutWriter) Write(b []byte) (int, error) {
	c.writes++
	streaming := c.Header().Get("Content-Type") == eventStream
	if streaming && c.writes < 10 {
		return c.ResponseWriter.Write(b)
	}
	c.ResponseWriter.Write(b[:len(b)/2])
	http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// sleep waits for d and says whether ctx let it.
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

// answerAtOnce writes the answer without an engine.
func (s *Server) answerAtOnce(w http.ResponseWriter, a *answer, to reply) bool {
	s.instant.prompt.Add(uint64(a.promptTokens()))
	s.instant.generated.Add(uint64(a.outputTokens()))
	s.instant.finished.Add(uint64(len(a.sequences)))
	for _, q := range a.sequences {
		s.metrics.success.WithLabelValues(q.finish).Inc()
	}
	h := w.Header()
	h.Set(runner.HeaderQueueWaitMs, "0")
	h.Set(runner.HeaderCacheHit, "false")
	h.Set(runner.HeaderCacheTokensReused, "0")
	if !a.Stream {
		h.Set(runner.HeaderGPUTimeMs, "0")
		return write(w, http.StatusOK, to.whole(a))
	}
	stream := openStream(w, a, to.(streamReply))
	for i, q := range a.sequences {
		for t := range q.output {
			stream.token(i, t, t+1)
		}
	}
	return stream.close()
}

// answer submits the sequences to the engine and writes what comes. A failure
// is returned only when nothing has been written.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, a *answer, to reply) (whole bool, f *failure) {
	changed := make(chan struct{}, 1)
	tickets := make([]*ticket, len(a.sequences))
	for i, q := range a.sequences {
		tickets[i] = &ticket{changed: changed, streaming: a.Stream, finish: q.finish}
	}
	switch err := s.plant.submit(tickets, a.requests()); {
	case errors.Is(err, errQueueFull):
		snapshot, waits := s.plant.read()
		mean, _ := waits.meanAndP95()
		return false, queueFull(snapshot.Waiting, s.config.MaxQueueDepth, mean)
	case errors.Is(err, errStopped):
		return false, notServing()
	case err != nil:
		return false, badRequest("", "%v", err)
	}
	defer s.plant.cancel(tickets)
	if a.Stream {
		return s.stream(w, r, a, tickets, to.(streamReply))
	}

	visible, f := s.finished(r.Context(), tickets)
	if f != nil {
		return false, f
	}
	if !s.plant.wait(r.Context(), visible) {
		return false, nil
	}
	s.tellAdmission(w, a, tickets)
	w.Header().Set(runner.HeaderGPUTimeMs, s.gpuTime(tickets))
	return write(w, http.StatusOK, to.whole(a)), nil
}

// finished waits for the end of all tickets and tells when the client sees it.
func (s *Server) finished(ctx context.Context, tickets []*ticket) (visible time.Time, f *failure) {
	for _, t := range tickets {
		for {
			p := s.plant.progress(t)
			if p.done {
				if p.visible.After(visible) {
					visible = p.visible
				}
				break
			}
			if f := s.plant.change(ctx, t); f != nil {
				return visible, f
			}
		}
	}
	return visible, nil
}

// stream sends each token when it becomes visible. Headers wait for the first,
// since only then is known how long the request queued.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, a *answer, tickets []*ticket, to streamReply) (whole bool, f *failure) {
	var stream *stream
	sent, open := make([]int, len(tickets)), len(tickets)
	for open > 0 {
		if f := s.plant.change(r.Context(), tickets[0]); f != nil {
			if stream == nil {
				return false, f
			}
			panic(http.ErrAbortHandler)
		}
		for i, t := range tickets {
			p := s.plant.progress(t)
			if p.tokens == sent[i] {
				continue
			}
			if !s.plant.wait(r.Context(), p.visible) {
				return false, nil
			}
			if stream == nil {
				s.tellAdmission(w, a, tickets)
				w.Header().Set("Trailer", runner.HeaderGPUTimeMs)
				stream = openStream(w, a, to)
			}
			for ; sent[i] < p.tokens; sent[i]++ {
				stream.token(i, sent[i], sent[i]+1)
			}
			if p.done {
				open--
			}
		}
		if stream != nil {
			stream.flush()
		}
	}
	w.Header().Set(runner.HeaderGPUTimeMs, s.gpuTime(tickets))
	return stream.close(), nil
}

// change waits until something has happened to the request of t.
func (p *plant) change(ctx context.Context, t *ticket) *failure {
	select {
	case <-t.changed:
		return nil
	case <-ctx.Done():
		return shed(http.StatusServiceUnavailable, "client_left", "The client left.", 0)
	case <-p.stopped:
		return notServing()
	}
}

// wait sleeps until an emulated instant and says whether ctx let it.
func (p *plant) wait(ctx context.Context, t time.Time) bool {
	d := p.clock.until(t)
	return d <= 0 || sleep(ctx, d)
}

// tellAdmission sets the headers about queue and cache and books the cached
// tokens with the answer.
func (s *Server) tellAdmission(w http.ResponseWriter, a *answer, tickets []*ticket) {
	wait := time.Duration(0)
	for _, t := range tickets {
		p := s.plant.progress(t)
		if !p.admitted.IsZero() {
			wait = max(wait, p.admitted.Sub(t.submitted))
		}
		a.cached += p.cached
	}
	h := w.Header()
	h.Set(runner.HeaderQueueWaitMs, strconv.FormatInt(s.plant.clock.real(wait).Milliseconds(), 10))
	h.Set(runner.HeaderCacheHit, strconv.FormatBool(a.cached > 0))
	h.Set(runner.HeaderCacheTokensReused, strconv.Itoa(a.cached))
}

// gpuTime is the real time from the first admission to the last token.
func (s *Server) gpuTime(tickets []*ticket) string {
	var from, to time.Time
	for _, t := range tickets {
		if c := t.completion; from.IsZero() || c.Admitted.Before(from) {
			from = c.Admitted
		}
		if c := t.completion; c.Finished.After(to) {
			to = c.Finished
		}
	}
	return strconv.FormatInt(s.plant.clock.real(to.Sub(from)).Milliseconds(), 10)
}
