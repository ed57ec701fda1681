package store

import (
	"context"
	"time"
)

// KeyUse is the last use of an API key.
type KeyUse struct {
	Hash string // the SHA-256 of the key, in hex digits
	At   time.Time
}

// KeyUseRetention is the time for which the last use of a key is kept.
const KeyUseRetention = 400 * 24 * time.Hour

// KeyUses keeps the last use of each API key.
type KeyUses interface {
	// NoteKeys stores each use, unless that of its key in the store is as late, and removes those
	// before a time, in one step. A call whose end is unknown can be repeated.
	NoteKeys(ctx context.Context, uses []KeyUse, before time.Time) error
	// UsedKeys returns the last use of each key, ordered by hash.
	UsedKeys(ctx context.Context) ([]KeyUse, error)
}
