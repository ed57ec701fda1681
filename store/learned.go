package store

import (
	"context"
	"time"
)

// LearnedState is what a dispatcher has learned of a pool of runners, for the one that leads it
// next. Only dispatchers read its Data.
type LearnedState struct {
	Pool string
	Kind string // one of a small fixed set; a pool has one state of each
	Data []byte // at most MaxLearnedBytes
	// Age is the time since it was kept, by the clock of the backend; negative if that was set
	// back. Set by Learned.
	Age time.Duration
}

const (
	// MaxLearnedBytes limits the data of a state.
	MaxLearnedBytes = 1 << 20
	// MaxLearned is the greatest number of states that are kept. Saving more removes the oldest.
	MaxLearned = 500
)

// LearnedStates keeps what dispatchers have learned. It may lose what it holds: pools are measured
// anew then.
type LearnedStates interface {
	// SaveLearned keeps the states as of now, each in the place of the one of its pool and kind.
	// ErrFenced: o is superseded, or its lease has ended; nothing is saved.
	SaveLearned(ctx context.Context, o Owner, states []LearnedState) error
	// Learned returns all states, ordered by pool and kind.
	Learned(ctx context.Context) ([]LearnedState, error)
	// ForgetLearned removes the states of a pool, and returns their number.
	ForgetLearned(ctx context.Context, pool string) (int, error)
}
