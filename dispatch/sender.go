package dispatch

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// flight is a line under way: from the loop to a sender and back, with what the sender found. The
// loop uses it again for another line afterwards.
type flight struct {
	plan.Finished
	chunk  *chunk
	answer failure
	reins  reins
}

// senders are goroutines that post lines. There are as many as lines were ever under way at once,
// less those that had nothing to do for a while: a fresh goroutine for every line would grow its
// stack anew each time.
type senders struct {
	send   func(w *sender, f *flight)
	memory openai.Memory // of answers
	queue  chan *flight
	idle   atomic.Int64
	start  sync.Once
	ending chan struct{}
	all    sync.WaitGroup
}

// sender is what one goroutine reuses from line to line.
type sender struct {
	scratch openai.Scratch
	result  []byte    // a result line up to the answer's body
	rest    [2][]byte // the body, and what follows it
	bound   bound
}

const (
	senderIdle    = 10 * time.Second
	largestBuffer = 32 << 10 // larger ones are not kept from line to line
)

func (s *senders) init() {
	s.queue = make(chan *flight, 1024)
	s.ending = make(chan struct{})
}

// hand gives a line to a sender. Only the loop calls it.
func (s *senders) hand(f *flight) {
	s.start.Do(s.init)
	if s.idle.Add(-1) < 0 {
		s.idle.Add(1)
		s.all.Go(func() { s.run(f) })
		return
	}
	s.queue <- f
}

func (s *senders) run(f *flight) {
	w := sender{scratch: openai.Scratch{Memory: s.memory}}
	defer w.scratch.Trim(0)
	defer w.bound.close()
	timer := time.NewTimer(senderIdle)
	defer timer.Stop()
	for {
		s.send(&w, f)
		w.trim()
		s.idle.Add(1)
		// lets the loop answer at once, instead of waking it on another core and being woken by it
		runtime.Gosched()
		select {
		case f = <-s.queue:
			continue
		default:
		}
		timer.Reset(senderIdle)
		select {
		case f = <-s.queue:
		case <-s.ending:
			return
		case <-timer.C:
			// Leave only if no line is promised to an idle sender.
			if s.idle.Add(-1) >= 0 {
				return
			}
			s.idle.Add(1)
			f = <-s.queue
		}
	}
}

func (s *senders) stop() {
	s.start.Do(s.init)
	close(s.ending)
	s.all.Wait()
}

func (w *sender) trim() {
	w.scratch.Trim(largestBuffer)
	if cap(w.result) > largestBuffer {
		w.result = nil
	}
}

// send posts one line and tells the loop how it went. A good answer goes into the journal on the
// way.
func (s *session) send(w *sender, f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	begun := time.Now()
	id := resultID(f.chunk.Batch, line.number)
	got, err := s.post(w, f, line, id)
	f.Latency = time.Since(begun)
	f.Status, f.RetryAfter = got.Status, got.RetryAfter
	if got.Large != nil {
		defer got.Large.File.Close()
	}
	if f.Outcome == plan.Succeeded {
		s.keepAnswer(w, f, line, id, got)
	} else {
		f.answer = s.describe(f.Outcome, got, err)
		f.answer.customID, _ = s.customID(f, line)
	}
	s.metrics.finished(f.Start.Runner, f.Outcome, f.Latency)
	s.inbox.put(f)
}

// post sends a line: so that its tokens can be seen if the planner wants that and the runner can,
// else as the user wrote it.
func (s *session) post(w *sender, f *flight, line *sourceLine, id string) (openai.Answer, error) {
	r := f.chunk.run
	var change edits
	if len(r.edits) > 0 {
		change = r.edits[editsKey{line.url(), line.model()}]
	}
	u := s.upstreams[f.Start.Runner]
	ctx := w.bound.begin(r, s.cfg.RequestTimeout)
	defer w.bound.end()
	f.reins.hold(w.bound.cancel)
	defer f.reins.drop()
	refused := 0
	kind := editsKey{line.url(), line.model()}
	if f.Start.Stream && !u.streams.isOff(kind) {
		if streamed, ok := change.streamed(line); ok {
			a, done, err := s.postStreamed(ctx, w, f, line, streamed, id)
			if done {
				return a, err
			}
			refused = a.Status
		}
	}
	request, err := lineRequest(line, change, id, r.tenant)
	if err != nil {
		return openai.Answer{}, s.unreadable(f, line, err)
	}
	a, err := s.request(ctx, w, f, u, request)
	if refused >= 400 && f.Outcome == plan.Succeeded && u.streams.leave(kind) {
		s.log.WarnContext(ctx, "a runner takes no requests for streams, asking without from now on",
			"runner", u.name, "model", kind.model, "url", kind.url, "status", refused)
	}
	return a, err
}

// request sends a line once, says how it went, and counts it if the upstream may have received it.
func (s *session) request(
	ctx context.Context, w *sender, f *flight, u *upstream, r openai.Request,
) (openai.Answer, error) {
	f.chunk.run.attempts.Add(1)
	a, err := u.client.Send(ctx, r, &w.scratch)
	if line := &f.chunk.lines[f.Start.Slot]; !a.Sent {
		f.chunk.run.attempts.Add(-1)
	} else if line.requests < math.MaxUint16 {
		line.requests++
	}
	f.Outcome = openai.Classify(ctx, a, err)
	return a, err
}
