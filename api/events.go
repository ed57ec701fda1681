package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// eventHeartbeat is the interval of the comments that keep proxies from closing an idle stream.
const eventHeartbeat = 15 * time.Second

var heartbeatText = []byte(": heartbeat\n\n")

// batchEvents answers GET /v1/batches/{id}/events with a stream of server-sent events:
//
//	state     the batch object, at first and when its status or its pause changes
//	progress  counts, rate and ETA, when they change
//	verdict   whether the deadline will be met, and the predicted finish, when they change
//	reason    why no line is started, or why the batch ended early, when that changes
//	done      the batch object at its end; the last event
//
// While the store is away the stream stays open, and a reason says so.
//
// Events contain the present state, not what happened, so a client that reconnects needs no past
// events. Last-Event-ID is ignored.
func (s *Server) batchEvents(w http.ResponseWriter, r *http.Request) error {
	now, err := s.firstSnapshot(r)
	if err != nil {
		return err
	}
	if r.Method != http.MethodHead {
		if err := s.moveToGate(w, r, &s.gates.streams); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx and others would buffer events
	if r.Method == http.MethodHead {
		return nil
	}
	s.watch.join(now.batch.ID)
	defer s.watch.leave(now.batch.ID)
	return ignoreGone(r.Context(), s.streamEvents(w, r, now))
}

// firstSnapshot reads the batch of a new stream.
func (s *Server) firstSnapshot(r *http.Request) (now *snapshot, err error) {
	now = &snapshot{}
	onOwnStack(func() {
		var shown []batchObject
		if now.batch, err = s.batch(r); err != nil {
			return
		}
		if shown, err = s.show(r.Context(), now.batch); err != nil {
			return
		}
		now.shown = shown[0]
	})
	return now, err
}

// onOwnStack calls f in a goroutine of its own and waits for it. A stack does not shrink below what
// deep calls have needed, and the stack of a stream's goroutine lasts as long as the stream.
func onOwnStack(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// streamEvents sends events until the batch ends, the client disconnects or the server stops.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, now *snapshot) error {
	stream := eventStream{out: w, control: http.NewResponseController(w)}
	heartbeat := time.NewTicker(eventHeartbeat)
	defer heartbeat.Stop()
	for {
		last, next := s.watch.latest(now.batch.ID)
		var ended bool
		var err error
		switch {
		case last != nil && errors.Is(last.err, store.ErrUnavailable):
			err = stream.reportAway(now)
		case last != nil && last.err != nil:
			err = last.err
		default:
			// a round may have started before the stream
			if last != nil && last.batch.Version >= now.batch.Version {
				now = last
			}
			ended, err = stream.report(now)
		}
		if ended || err != nil {
			return err
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-s.streams.closed:
			return nil // the client reconnects, to another daemon
		case <-heartbeat.C:
			if err := stream.write(heartbeatText); err != nil {
				return err
			}
			var deleted error
			// a watch does not report deletions
			if onOwnStack(func() { _, deleted = s.batch(r) }); deleted != nil &&
				!errors.Is(deleted, store.ErrUnavailable) {
				return deleted
			}
		case <-next:
		}
	}
}

// ignoreGone drops the error after the client has disconnected, as streams usually end.
func ignoreGone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // nobody is left to read it
	}
	return err
}

// report sends the events for what has changed since the last report.
func (e *eventStream) report(of *snapshot) (ended bool, err error) {
	b, now := &of.batch, &of.shown
	details := now.Tidefill
	state := stateEvent{now.Status, details.Paused}
	stateChanged := e.state != state
	e.state = state
	progress := progressEvent{
		RequestCounts: now.RequestCounts,
		Progress:      details.Progress,
		Rate:          details.Rate,
		Attempts:      details.Attempts,
		InFlight:      details.InFlight,
		Retrying:      details.Retrying,
	}
	progressChanged := e.progress != progress
	e.progress = progress
	progress.ETA = details.ETA // changes with every second; not a reason for an event
	forecastChanged := !e.forecast.equal(details.forecast)
	e.forecast = details.forecast
	reason := reasonEvent{orEmpty(details.Waiting), orEmpty(details.Reason)}
	reasonChanged := e.reason != reason
	e.reason = reason

	err = errors.Join(
		e.send(stateChanged, "state", of, now),
		e.send(progressChanged, "progress", of, progress),
		e.send(forecastChanged, "verdict", of, details.forecast),
		e.send(reasonChanged, "reason", of, reasonObject{details.Waiting, details.Reason}),
		e.send(b.State.Terminal(), "done", of, now),
	)
	return b.State.Terminal(), err
}

// storeAway is the reason of an event while the store is away.
const storeAway = "store_unreachable: The store can't be reached, so nothing newer is known of " +
	"the batch. Wait: it goes on when the store is back."

// reportAway sends, once, that the store is away.
func (e *eventStream) reportAway(of *snapshot) error {
	if e.reason.waiting == storeAway {
		return nil
	}
	if e.state == (stateEvent{}) { // the stream begins
		if _, err := e.report(of); err != nil {
			return err
		}
	}
	e.reason.waiting = storeAway
	waiting := storeAway
	// Not the text that other streams share: it holds the snapshot's own reason.
	return e.send(true, "reason", &snapshot{batch: store.Batch{Version: of.batch.Version}},
		reasonObject{&waiting, of.shown.Tidefill.Reason})
}

type stateEvent struct {
	status store.State
	paused bool
}

type progressEvent struct {
	RequestCounts requestCounts `json:"request_counts"`
	Progress      float64       `json:"progress"`
	Rate          float64       `json:"rate"`
	ETA           *int64        `json:"eta"`
	Attempts      int64         `json:"attempts"`
	InFlight      int           `json:"in_flight"`
	Retrying      int           `json:"retrying"`
}

type reasonEvent struct{ waiting, reason string }

type reasonObject struct {
	Waiting *string `json:"waiting"`
	Reason  *string `json:"reason"`
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// eventStream writes events and remembers the values that were sent last.
type eventStream struct {
	out     http.ResponseWriter
	control *http.ResponseController

	state    stateEvent
	progress progressEvent
	forecast forecast
	reason   reasonEvent
}

// send writes an event if wanted is set.
func (e *eventStream) send(wanted bool, name string, of *snapshot, data any) error {
	if !wanted {
		return nil
	}
	text, err := of.texts.event(name, of.batch.Version, data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}
	return e.write(text)
}

func (e *eventStream) write(text []byte) error {
	if _, err := e.out.Write(text); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return nil
}

// eventTexts caches the encoded events of a snapshot for all of its streams.
type eventTexts struct {
	mu     sync.Mutex
	byName map[string][]byte
}

func (t *eventTexts) event(name string, id int64, data any) (text []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text, ok := t.byName[name]; ok {
		return text, nil
	}
	onOwnStack(func() {
		var encoded []byte
		encoded, err = json.Marshal(data)
		text = fmt.Appendf(nil, "event: %s\nid: %d\ndata: %s\n\n", name, id, encoded)
	})
	if err != nil {
		return nil, err
	}
	if t.byName == nil {
		t.byName = make(map[string][]byte)
	}
	t.byName[name] = text
	return text, nil
}

// streams ends the event streams at shutdown.
type streams struct {
	once   sync.Once
	closed chan struct{}
}

// CloseStreams ends all event streams, so that a shutdown does not wait for them. Pass it to
// http.Server.RegisterOnShutdown. Streams that are opened later end at once.
func (s *Server) CloseStreams() { s.streams.once.Do(func() { close(s.streams.closed) }) }
