package emulator

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// answer is the response to a request.
type answer struct {
	*inference
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

// answer generates the response and writes it. It returns a failure only if nothing has been
// written; whole reports that the response is complete.
func (s *Server) answer(
	w http.ResponseWriter, r *http.Request, a *answer, to reply,
) (whole bool, f *failure) {
	if s.loop == nil {
		return s.answerInstantly(w, a, to), nil
	}
	changed := make(chan struct{}, 1)
	tickets := make([]*ticket, len(a.sequences))
	for i, q := range a.sequences {
		tickets[i] = &ticket{changed: changed, streaming: a.Stream, finish: q.finish}
	}
	switch err := s.loop.submit(tickets, a.requests()); {
	case errors.Is(err, errQueueFull):
		snapshot, waits := s.loop.read()
		mean, _ := waits.meanAndP95()
		return false, queueFull(snapshot.Waiting, s.config.MaxQueueDepth, mean)
	case errors.Is(err, errStopped):
		return false, notServing()
	case err != nil:
		return false, badRequest("", "%v", err)
	}
	defer s.loop.cancel(tickets)
	if a.Stream {
		return s.stream(w, r, a, tickets, to.(streamReply))
	}

	visible, f := s.finished(r.Context(), tickets)
	if f != nil {
		return false, f
	}
	if !s.loop.wait(r.Context(), visible) {
		return false, nil
	}
	s.setAdmissionHeaders(w, a, tickets)
	w.Header().Set(runner.HeaderGPUTimeMs, s.gpuTime(tickets))
	return write(w, http.StatusOK, to.whole(a)), nil
}

// answerInstantly writes the response without an engine.
func (s *Server) answerInstantly(w http.ResponseWriter, a *answer, to reply) bool {
	s.instant.prompt.Add(uint64(a.promptTokens()))
	s.instant.generated.Add(uint64(a.outputTokens()))
	s.instant.finished.Add(uint64(len(a.sequences)))
	for _, q := range a.sequences {
		s.metrics.exporter.answered(q.finish)
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

// finished waits for the end of all tickets and returns when the client sees it.
func (s *Server) finished(ctx context.Context, tickets []*ticket) (visible time.Time, f *failure) {
	for _, t := range tickets {
		for {
			p := s.loop.progress(t)
			if p.done {
				if p.visible.After(visible) {
					visible = p.visible
				}
				break
			}
			if f := s.loop.change(ctx, t); f != nil {
				return visible, f
			}
		}
	}
	return visible, nil
}

// stream sends each token when it becomes visible. The headers are sent with the first token, since
// only then the time in the queue is known.
func (s *Server) stream(
	w http.ResponseWriter, r *http.Request, a *answer, tickets []*ticket, to streamReply,
) (whole bool, f *failure) {
	var stream *stream
	sent, open := make([]int, len(tickets)), len(tickets)
	for open > 0 {
		if f := s.loop.change(r.Context(), tickets[0]); f != nil {
			if stream == nil {
				return false, f
			}
			panic(http.ErrAbortHandler)
		}
		for i, t := range tickets {
			p := s.loop.progress(t)
			if p.tokens == sent[i] {
				continue
			}
			if !s.loop.wait(r.Context(), p.visible) {
				return false, nil
			}
			if stream == nil {
				s.setAdmissionHeaders(w, a, tickets)
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

// setAdmissionHeaders sets the headers about queue and cache and counts the cached tokens.
func (s *Server) setAdmissionHeaders(w http.ResponseWriter, a *answer, tickets []*ticket) {
	wait := time.Duration(0)
	for _, t := range tickets {
		p := s.loop.progress(t)
		if !p.admitted.IsZero() {
			wait = max(wait, p.admitted.Sub(t.submitted))
		}
		a.cached += p.cached
	}
	h := w.Header()
	h.Set(runner.HeaderQueueWaitMs, strconv.FormatInt(s.loop.clock.real(wait).Milliseconds(), 10))
	h.Set(runner.HeaderCacheHit, strconv.FormatBool(a.cached > 0))
	h.Set(runner.HeaderCacheTokensReused, strconv.Itoa(a.cached))
}

// gpuTime returns the real time from the first admission to the last token.
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
	return strconv.FormatInt(s.loop.clock.real(to.Sub(from)).Milliseconds(), 10)
}
