package store

import (
	"context"
	"time"
)

// Notice is an event of a batch of which an endpoint of webhooks is notified.
type Notice struct {
	ID        string // of the event; the same in every attempt to deliver it
	Batch     string
	Event     string // such as batch.completed
	CreatedAt time.Time
	Attempts  int
	// Due is when the next attempt is due. Zero: none is; it was delivered or given up.
	Due time.Time
}

// Notices keeps, for each endpoint of webhooks, up to which change of batches it has notices, and
// its last notice about each batch.
type Notices interface {
	// NoticeCursor returns the cursor that AddNotices stored last; empty: none.
	NoticeCursor(ctx context.Context, endpoint string) (Cursor, error)
	// AddNotices stores a cursor and notices in one step. A notice replaces the endpoint's earlier
	// one about its batch. Notices about deleted batches are dropped. ErrConflict: the stored
	// cursor is not from, since another process was faster; nothing is stored.
	AddNotices(ctx context.Context, endpoint string, from, to Cursor, notices []Notice) error
	// UpdateNotice writes the Attempts and the Due of a notice. ErrNotFound: it was replaced, or
	// its batch was deleted.
	UpdateNotice(ctx context.Context, endpoint string, n Notice) error
	// LastNotices returns the endpoint's last notices about these batches, by batch.
	LastNotices(ctx context.Context, endpoint string, batches []string) (map[string]Notice, error)
	// DueNotices returns up to limit notices that are due at a time, those first that are due
	// longest.
	DueNotices(ctx context.Context, endpoint string, at time.Time, limit int) ([]Notice, error)
	// PendingNotices counts the endpoint's notices that are due now or later.
	PendingNotices(ctx context.Context, endpoint string) (int, error)
}
