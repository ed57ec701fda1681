package send

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/tracing"
)

// Senders is a pool of goroutines that send lines. It holds as many as lines were ever in flight at
// once, less those that had nothing to do for senderIdle. A new goroutine for each line would grow
// its stack each time.
type Senders struct {
	transport *transport
	queue     chan *work.Flight
	idle      atomic.Int64
	ending    chan struct{}
	all       sync.WaitGroup
}

// sender holds what one goroutine reuses from line to line.
type sender struct {
	scratch openai.Scratch
	result  work.ResultBuffer
	request requestContext
	span    tracing.Line // of the attempt
}

const (
	// senderIdle is the time without a line after which a sender ends.
	senderIdle = 10 * time.Second
	// maxScratch is the size of the largest buffer that is kept from line to line, in bytes.
	maxScratch = 32 << 10
)

// New returns a pool without senders.
func New(s *work.Session, parts Parts) *Senders {
	return &Senders{transport: &transport{s, parts, newChecking()},
		queue: make(chan *work.Flight, 1024), ending: make(chan struct{})}
}

// Submit gives a line to a sender. Only the loop calls it.
func (s *Senders) Submit(f *work.Flight) {
	if s.idle.Add(-1) < 0 {
		s.idle.Add(1)
		s.all.Go(func() { s.run(f) })
		return
	}
	s.queue <- f
}

func (s *Senders) run(f *work.Flight) {
	w := sender{scratch: openai.Scratch{Memory: &s.transport.Memory.Answers}}
	defer w.scratch.Trim(0)
	defer w.request.close()
	timer := time.NewTimer(senderIdle)
	defer timer.Stop()
	for {
		s.transport.send(&w, f)
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
			// Leave only if no line is on its way to an idle sender.
			if s.idle.Add(-1) >= 0 {
				return
			}
			s.idle.Add(1)
			f = <-s.queue
		}
	}
}

// Stop ends all senders, none of which has a line.
func (s *Senders) Stop() {
	close(s.ending)
	s.all.Wait()
}

func (w *sender) trim() {
	w.scratch.Trim(maxScratch)
	w.result.Trim()
}
