package store

import (
	"context"
	"time"
)

// PoolHour is what interactive users of a pool felt in one hour, and what batch work did there.
type PoolHour struct {
	Pool string
	Hour time.Time // its beginning, UTC
	// FirstTokens and Tokens count interactive requests by the time of their first token, and by
	// the mean time between their further tokens.
	FirstTokens, Tokens Lateness
	// Allowed is the share of interactive requests that batch work may make late, as it was last in
	// the hour. 0: nothing was promised.
	Allowed float64
	// Lines counts those that got their result, and LineTokens the input and output tokens of those
	// that succeeded.
	Lines, LineTokens int64
}

// Add adds what another one counts, which is no older.
func (h *PoolHour) Add(later PoolHour) {
	h.FirstTokens.Add(later.FirstTokens)
	h.Tokens.Add(later.Tokens)
	h.Allowed = later.Allowed
	h.Lines += later.Lines
	h.LineTokens += later.LineTokens
}

// Lateness counts interactive requests by one of their times. The numbers may have fractions.
type Lateness struct {
	// Requests is the number that had the time, and Late that of those for which it exceeded the
	// objective, with batch lines beside them as they ran.
	Requests, Late float64
	// Estimated is the number of the Requests for which Added is known, and Added an estimate of
	// those that batch work has made late.
	Estimated, Added float64
}

// Add adds what another one counts.
func (l *Lateness) Add(other Lateness) {
	l.Requests += other.Requests
	l.Late += other.Late
	l.Estimated += other.Estimated
	l.Added += other.Added
}

// PoolHistoryRetention is the time for which hours of pools are kept.
const PoolHistoryRetention = 90 * 24 * time.Hour

// PoolHistory keeps the history of pools by hour.
type PoolHistory interface {
	// AddPoolHours adds counts to those of the same pools and hours, in one step, and removes the
	// hours that began before a time. Each call of an owner has a higher number than those before.
	// One with a number that was stored adds nothing again, so a call whose end is unknown can be
	// repeated. ErrFenced: o is superseded, or its lease has ended; nothing is stored.
	AddPoolHours(ctx context.Context, o Owner, number int64, hours []PoolHour,
		before time.Time) error
	// PoolHours returns the hours of a pool, or of all pools if it is empty, that began from since
	// on, ordered by pool and hour.
	PoolHours(ctx context.Context, pool string, since time.Time) ([]PoolHour, error)
}
