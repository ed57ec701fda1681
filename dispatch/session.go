package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/send"
	"github.com/tidefill/tidefill/dispatch/work"
)

// Workers of each kind. They wait for the store most of the time.
const (
	reconcilers = 8 // batches brought forward at once
	loaders     = 8 // chunks claimed and read at once
)

// settleTime is the longest time that a shutdown waits for the store, unless the store needs
// longer.
const settleTime = 5 * time.Second

// errMisplaced ends a session whose process does not reach the files of the store. Another process
// can lead, which may reach them.
var errMisplaced = errors.New("this process does not reach the files of the store")

// session is the dispatcher's work under one registration with the store. It starts its parts and
// stops them in order. Each part owns its state and is constructed with those that it needs, see
// newSession.
type session struct {
	*work.Session
	settings   func() *settings
	settling   time.Duration // limit of a shutdown's wait for the journals
	lease      *lead.Lease
	leading    *lead.Leadership
	fleet      *lead.Fleet
	reconciler *reconciler
	claimer    *claim.Claimer
	finisher   *finish.Finisher
	rooms      *send.Rooms
	senders    *send.Senders
	loop       *loop
	progress   *progress
	sweeper    *finish.Sweeper
	follower   *lead.Follower
	history    *poolHistory
	requests   *requests
	ready      func(bool)
	misplaced  func(ctx context.Context) error // see Deps.Misplaced
}

// session registers, works until ctx is done or the lease is lost, and cleans up.
func (d *Dispatcher) session(ctx context.Context) error {
	// taking ends first: no more batches, chunks and lines. The loop and the requests in flight go
	// on until they are drained. The lease is held until then, or other processes would take over
	// what is drained, and no answer to it could be recorded.
	holding, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	context.AfterFunc(holding, stopTaking)
	if err := d.deps.Misplaced(ctx); err != nil {
		return fmt.Errorf("%w: %w", errMisplaced, err)
	}
	s, err := d.newSession(ctx, lose)
	if err != nil {
		return err
	}
	d.current.Store(s)
	d.obstacle.Store(nil)
	// after the session is the current one: changes meanwhile are sent twice, not lost
	d.draining.repeat(d.send)
	d.closed.repeat(d.send)
	defer d.current.CompareAndSwap(s, nil)
	var renewing sync.WaitGroup
	renewing.Go(func() { s.lease.RenewUntil(holding) })
	s.run(taking)
	s.shutdown(holding)
	lost := context.Cause(holding)
	lose(nil)
	renewing.Wait()
	if ctx.Err() != nil || errors.Is(lost, errMisplaced) {
		// The journals are flushed: another process, or the next start, can take over at once.
		s.lease.Unregister(ctx)
		if d.deps.OnResigned != nil {
			d.deps.OnResigned()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return lost
}

// watchPlace ends the session when this process does not reach the files any more. It is not a part
// of renewing the lease, which must not wait for a bucket.
func (s *session) watchPlace(ctx context.Context) {
	tick := time.NewTicker(s.lease.Registration.TTL / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.misplaced(ctx); err != nil && ctx.Err() == nil {
			s.Lose(fmt.Errorf("%w: %w", errMisplaced, err))
			return
		}
	}
}

// run takes work until taking is done. The loop continues after that.
func (s *session) run(taking context.Context) {
	go s.loop.run()
	var takers sync.WaitGroup
	takers.Go(func() { s.lease.LeadUntil(taking) })
	for range reconcilers {
		takers.Go(func() { s.Batches.Run(taking, s.reconciler.reconcile) })
	}
	for range loaders {
		takers.Go(func() { s.claimer.Run(taking) })
	}
	takers.Go(func() { s.reconciler.poll(taking, func() { s.ready(true) }) })
	takers.Go(func() { s.sweeper.Run(taking) })
	takers.Go(func() { s.follower.Run(taking) })
	takers.Go(func() { s.rooms.Run(taking) })
	takers.Go(func() { s.followSettings(taking) })
	takers.Go(func() { s.watchPlace(taking) })
	<-taking.Done()
	s.ready(false)
	s.Batches.Close()
	takers.Wait()
}

// shutdown drains the loop, makes the answers durable and closes all chunks. holding ends when the
// lease is lost.
func (s *session) shutdown(holding context.Context) {
	s.requests.end()
	drained := s.loop.drain()
	select {
	case <-drained:
	case <-time.After(s.settings().Drain):
		s.Tasks.Evict()
		<-drained
	case <-holding.Done(): // answers that come now could not be recorded
		s.Log.Warn("evicting the lines in flight", "error", context.Cause(holding))
		s.Tasks.Evict()
		<-drained
	}
	s.senders.Stop()
	s.history.flush(s.Tasks.Context)
	s.settle()
}

// settle flushes the journals of all chunks, finishes the chunks that are complete thereby, and
// closes the others.
func (s *session) settle() {
	limit := time.AfterFunc(s.settling, s.Tasks.Evict)
	defer limit.Stop()
	var chunks []*work.Chunk
	s.Runs.Each(func(r *work.Run) { chunks = append(chunks, r.HeldChunks()...) })
	var flushing sync.WaitGroup
	for _, c := range chunks {
		flushing.Go(func() {
			if err := c.Journal.Flush(s.Tasks.Context); err != nil {
				s.Log.Warn("could not flush a journal", "batch_id", c.Batch, "chunk", c.Index,
					"error", err)
			}
		})
	}
	flushing.Wait()
	s.finisher.End()
	s.Tasks.Wait()
	s.Runs.Each(func(r *work.Run) {
		for _, c := range r.HeldChunks() {
			c.Journal.Close(context.WithoutCancel(s.Tasks.Context))
			c.Span.GivenBack()
		}
		r.Close()
	})
	s.Tasks.Evict()
}
