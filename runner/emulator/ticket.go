package emulator

import (
	"context"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// ticket follows one sequence through the engine. Its fields are guarded by the loop's lock until
// completion is set.
type ticket struct {
	interactive bool
	changed     chan struct{} // notified of the end and, if streaming, of each token; capacity 1
	streaming   bool
	finish      string // why it will end

	id         engine.ID
	prompt     int
	submitted  time.Time
	admitted   time.Time
	cached     int
	tokens     int
	firstToken time.Time
	lastToken  time.Time
	reported   int // tokens, and when; an exporter uses them
	reportedAt time.Time
	completion *engine.Completion
}

// streamed reports whether the client gets each token at once. Interactive users do.
func (t *ticket) streamed() bool { return t.streaming || t.interactive }

// duration returns the time of a finished sequence, for its client.
func (t *ticket) duration() time.Duration {
	return t.lastToken.Sub(t.submitted) + engine.ServerDelay(t.tokens)
}

// perToken returns the mean time of the tokens after the first one of a finished sequence.
func (t *ticket) perToken() time.Duration {
	return t.lastToken.Sub(t.firstToken) / time.Duration(t.tokens-1)
}

func (t *ticket) notify() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// progress is the state of a ticket.
type progress struct {
	tokens   int
	done     bool
	visible  time.Time // emulated time at which a client sees the last of tokens
	admitted time.Time
	cached   int
}

func (l *engineLoop) progress(t *ticket) progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return progress{
		tokens: t.tokens, done: t.completion != nil, cached: t.cached, admitted: t.admitted,
		visible: t.lastToken.Add(engine.ServerDelay(t.tokens)),
	}
}

// change waits until the request of t has changed, or returns why it will not.
func (l *engineLoop) change(ctx context.Context, t *ticket) *failure {
	select {
	case <-t.changed:
		return nil
	case <-ctx.Done():
		return shed(http.StatusServiceUnavailable, "client_left", "The client left.", 0)
	case <-l.stopped:
		return notServing()
	}
}

// wait waits until an emulated time and reports whether ctx has not ended.
func (l *engineLoop) wait(ctx context.Context, t time.Time) bool {
	d := l.clock.until(t)
	return d <= 0 || sleep(ctx, d)
}
