package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// learning keeps what the planner has learned in the store, and returns it when this process begins
// to lead. Errors of the store change nothing else.
type learning struct {
	*work.Session
	store   LearnedStates
	every   time.Duration // between two saves
	timeout time.Duration // of one save, or of reading

	storeFailures
	saving atomic.Bool

	// Owned by the loop.
	next  time.Time // when to save again
	ended bool      // nothing more is saved: lines drain, which says nothing about the pools
}

// learnedKind is the kind of the states that dispatchers save, learnedVersion the version of their
// form.
const (
	learnedKind    = "pool"
	learnedVersion = 1
)

// learnedState is the form of a saved state.
type learnedState struct {
	Version int
	plan.Learned
}

// post saves what was learned, if it is time. The loop calls it, since only the loop may read the
// planner. Another goroutine writes to the store.
func (l *learning) post(now time.Time, planner *plan.Planner) {
	if l.next.IsZero() {
		l.next = now.Add(l.every)
	}
	if !l.ended && !now.Before(l.next) {
		l.save(now, planner)
	}
}

// end saves what was learned for the last time.
func (l *learning) end(now time.Time, planner *plan.Planner) {
	if !l.ended {
		l.save(now, planner)
	}
	l.ended = true
}

func (l *learning) save(now time.Time, planner *plan.Planner) {
	l.next = now.Add(l.every)
	var states []store.LearnedState
	for _, learned := range planner.Learned(now) {
		data, err := json.Marshal(learnedState{learnedVersion, learned})
		if err == nil && len(data) <= store.MaxLearnedBytes {
			states = append(states, store.LearnedState{Pool: learned.ID,
				Kind: learnedKind, Data: data})
		}
	}
	if len(states) == 0 || !l.saving.CompareAndSwap(false, true) {
		return
	}
	l.Tasks.Start(func(ctx context.Context) {
		defer l.saving.Store(false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		defer cancel()
		l.log(l.Log, l.store.SaveLearned(ctx, l.Owner, states), "could not save what was learned "+
			"of the pools, trying again; they are measured anew after a restart")
	})
}

// Recall returns what was learned of pools before.
func (l *learning) Recall(ctx context.Context) (ev plan.Recall) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	states, err := l.store.Learned(ctx)
	l.log(l.Log, err, "could not read what was learned of the pools; they are measured anew")
	for _, state := range states {
		if state.Kind != learnedKind {
			continue
		}
		learned, err := decodeLearned(state.Data)
		if err != nil {
			l.Log.InfoContext(ctx, "what was learned of a pool is not used; it is measured anew",
				"pool", state.Pool, "reason", err)
			continue
		}
		ev.Pools = append(ev.Pools, plan.Recalled{Learned: learned, Age: learnedAge(state.Age)})
	}
	return ev
}

func decodeLearned(data []byte) (plan.Learned, error) {
	var of struct{ Version int }
	if err := json.Unmarshal(data, &of); err != nil {
		return plan.Learned{}, fmt.Errorf("it is damaged: %w", err)
	}
	if of.Version != learnedVersion {
		return plan.Learned{}, fmt.Errorf("it has version %d, and this release knows %d",
			of.Version, learnedVersion)
	}
	var state learnedState
	if err := json.Unmarshal(data, &state); err != nil {
		return plan.Learned{}, fmt.Errorf("it is damaged: %w", err)
	}
	return state.Learned, nil
}

const (
	// clockError limits the difference between clocks of processes that share a store.
	clockError = time.Minute
	// ageUnknown is the age of a state that was saved in the future: the clock was set back, so
	// nobody knows when. It is too long for what changes in minutes.
	ageUnknown = 24 * time.Hour
)

func learnedAge(age time.Duration) time.Duration {
	if age < -clockError {
		return ageUnknown
	}
	return max(age, 0)
}

// takeovers logs what pools took over of what was learned before, by pool, when it changes.
type takeovers map[string]string

func (t takeovers) log(log *slog.Logger, pools []plan.PoolStatus) {
	for _, p := range pools {
		if p.TakenOver == nil {
			continue
		}
		pool, reason := p.ID, "none"
		if err := p.TakenOver.Refused; err != nil {
			reason = err.Error()
		}
		if t[pool] == reason {
			continue
		}
		t[pool] = reason
		age := p.TakenOver.Age.Round(time.Second)
		if p.TakenOver.Refused != nil {
			log.Info("flow control measures the pool anew; what was learned of it is not used",
				"pool", pool, "age", age, "reason", reason)
			continue
		}
		log.Info("flow control continues with what was learned of the pool", "pool", pool,
			"age", age)
	}
}

// Forget drops what was learned of a pool, named as in metrics, which is then measured anew. The
// error is store.ErrNotFound if nothing is known of it, and a LedElsewhereError if another process
// leads it.
func (d *Dispatcher) Forget(ctx context.Context, pool string) error {
	s := d.current.Load()
	i := slices.IndexFunc(d.Pools(), func(p plan.PoolStatus) bool {
		return p.ID == pool && len(p.Runners) > 0
	})
	if s != nil && i >= 0 {
		s.Inbox.Event(plan.Forget{Pool: pool})
	} else if err := d.ledElsewhere(ctx, pool); err != nil {
		return err
	}
	removed, err := d.deps.Metadata.ForgetLearned(ctx, pool)
	if err == nil && removed == 0 && i < 0 {
		err = fmt.Errorf("pool %q: %w", pool, store.ErrNotFound)
	}
	if err == nil {
		d.log.InfoContext(ctx, "what was learned of the pool is forgotten", "pool", pool)
	}
	return err
}

// LedElsewhereError reports that another process leads a pool.
type LedElsewhereError struct{ Node string }

func (e *LedElsewhereError) Error() string {
	return fmt.Sprintf("node %s leads the pool; ask that one", e.Node)
}

// Leader returns the node that leads the pool.
func (e *LedElsewhereError) Leader() string { return e.Node }

// ledElsewhere returns a LedElsewhereError if another process leads models of the pool.
func (d *Dispatcher) ledElsewhere(ctx context.Context, pool string) error {
	states, err := d.deps.Metadata.Learned(ctx)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Pool != pool {
			continue
		}
		learned, _ := decodeLearned(state.Data) // a damaged one is removed all the same
		var names []string
		for _, m := range learned.Models {
			names = append(names, lead.ModelName(m))
		}
		leaders, err := d.deps.Metadata.Leaders(ctx, names)
		if err != nil {
			return err
		}
		for _, node := range leaders {
			if node != d.deps.Node {
				return &LedElsewhereError{node}
			}
		}
	}
	return nil
}
