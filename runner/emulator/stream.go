package emulator

import (
	"net/http"
)

const eventStream = "text/event-stream"

// stream sends the events of one response.
type stream struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	answer  *answer
	reply   streamReply
	broken  bool
}

func openStream(w http.ResponseWriter, a *answer, to streamReply) *stream {
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, flusher: http.NewResponseController(w), answer: a, reply: to}
	s.write(to.open(a))
	return s
}

// token sends the tokens from up to to of a sequence.
func (s *stream) token(index, from, to int) { s.write(s.reply.delta(s.answer, index, from, to)) }

func (s *stream) flush() {
	if s.flusher.Flush() != nil {
		s.broken = true
	}
}

// close ends the stream and reports whether all of it was written.
func (s *stream) close() bool {
	s.write(s.reply.close(s.answer))
	s.flush()
	return !s.broken
}

func (s *stream) write(events []byte) {
	if len(events) == 0 || s.broken {
		return
	}
	if _, err := s.w.Write(events); err != nil {
		s.broken = true
	}
}
