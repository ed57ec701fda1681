package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// sharing is what the daemon exchanges with other processes of its store for speed.
type sharing struct {
	live.Snapshots
	live.Events
	live.Windows
	away func() error // why nothing is exchanged with others at present; nil: never is

	peers   peers
	decides atomic.Bool  // this process decided last about replicas
	looking atomic.Bool  // a look at who leads is due
	looked  atomic.Int64 // when the last one began, in nanoseconds
}

// share takes the medium of the store. Without one the process exchanges nothing but what is in the
// store.
func (a *App) share() {
	if m, is := a.store.Progress.(live.Medium); is {
		a.sharing = &sharing{Snapshots: m, Events: m, Windows: m, away: m.Away}
		return
	}
	var m live.Memory
	a.sharing = &sharing{Snapshots: &m, Events: &m, Windows: &m}
}

// degraded returns why the process exchanges nothing with others at present; empty: it does, or it
// has no medium for that.
func (s *sharing) degraded() string {
	if s.away == nil || s.away() == nil {
		return ""
	}
	return "Redis is away, so changes by other processes are noticed later: " + s.away().Error()
}

// follow passes on the events of this process and of others until the App is closed.
func (a *App) follow() {
	stop := a.sharing.Subscribe(func(topic live.Topic, ids []string) {
		switch topic {
		case live.Batches:
			for _, id := range ids {
				a.dispatcher.Nudge(id)
			}
			if len(ids) == 0 || !a.dispatches() {
				a.dispatcher.Poll()
			}
			a.api.Wake(ids...)
		case live.Progress:
			a.api.Wake(ids...)
		case live.Leading:
			a.dispatcher.LookForLeaders()
		case live.Scaling:
			if !a.sharing.decides.Load() {
				a.scaling.driver.Poke()
			}
		}
	})
	a.onClose("events", func() error {
		stop()
		return nil
	})
}

// changed emits that users have changed a batch.
func (a *App) changed(batch string) { a.sharing.Emit(live.Batches, batch) }

// progressed emits that batches have moved on, which their users want to see.
func (a *App) progressed(batches ...string) { a.sharing.Emit(live.Progress, batches...) }

const (
	// lookEvery is the shortest time between two looks, because of changes, at who leads.
	lookEvery = 100 * time.Millisecond
	// wakeAgain is the time after which listening is tried again.
	wakeAgain = time.Second
)

// wake has changes of other processes noticed that the store notices, until ctx ends.
func (a *App) wake(ctx context.Context) {
	waker, is := a.store.Records.(store.Waker)
	if !is {
		return
	}
	failing := false
	for ctx.Err() == nil {
		err := waker.WakeOnChange(ctx, func() {
			failing = false
			a.dispatcher.NotifyOfChanges(true)
			a.dispatcher.Poll()
			a.api.Wake()
			a.lookForLeaders()
		})
		a.dispatcher.NotifyOfChanges(false)
		if errors.Is(err, errors.ErrUnsupported) {
			a.log.WarnContext(ctx, "changes of other processes are noticed by polling alone",
				"error", err)
			return
		}
		if err != nil && ctx.Err() == nil && !failing {
			failing = true
			a.log.InfoContext(ctx, "changes of other processes are noticed by polling, until "+
				"listening works again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wakeAgain):
		}
	}
}

// lookForLeaders has it looked at soon who leads, if this process stands by. Many changes share a
// look, and one comes after the last of them.
func (a *App) lookForLeaders() {
	if !a.dispatcher.SharesWithOthers() || !a.sharing.looking.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(max(0, lookEvery-time.Since(time.Unix(0, a.sharing.looked.Load()))), func() {
		a.sharing.looked.Store(time.Now().UnixNano())
		a.sharing.looking.Store(false)
		a.dispatcher.LookForLeaders()
	})
}

// peers are what other processes have published, as last read.
type peers struct {
	mu           sync.Mutex
	at, storedAt time.Time
	known        []peer
}

// peer is what one process has published.
type peer struct {
	live.Snapshot
	at time.Time // of the publication, by the clock of this process
}

const (
	// peersEvery is how long what was read counts as new.
	peersEvery = 500 * time.Millisecond
	// peersStoredEvery is how often the store is asked, which is where leaders publish at times.
	peersStoredEvery = 2 * time.Second
	// peersTimeout limits how long a request waits for it.
	peersTimeout = 2 * time.Second
)

// others returns what other processes have published of the pools that they lead, the highest
// epochs first. What can't be read now is as it was last.
func (a *App) others(ctx context.Context) []peer {
	p := &a.sharing.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.at) >= peersEvery {
		p.at = now
		ctx, cancel := context.WithTimeout(ctx, peersTimeout)
		defer cancel()
		read, err := a.sharing.Snapshots.Snapshots(ctx, poolsKind)
		p.merge(now, a.cfg.Node, read)
		if away := err != nil || a.sharing.away == nil; away &&
			now.Sub(p.storedAt) >= peersStoredEvery {
			p.storedAt = now
			stored, err := a.storedPools(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				a.log.DebugContext(ctx, "could not read what other processes lead", "error", err)
			}
			p.merge(now, a.cfg.Node, stored)
		}
	}
	all := make([]peer, len(p.known))
	for i, one := range p.known {
		one.Age = max(0, now.Sub(one.at))
		all[i] = one
	}
	return all
}
