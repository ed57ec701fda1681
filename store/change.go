package store

import "context"

// Cursor is a position in a backend's sequence of changes. A backend makes it and reads it; for
// everybody else it is opaque. It is valid for all processes that share the store, and as long as
// the backend documents. Empty: the start.
type Cursor string

// Changes reports which batches have changed.
type Changes interface {
	// ChangedBatches returns, oldest change first, up to limit ids of batches that changed after
	// the cursor, and the cursor to ask with next. The empty cursor returns every batch that is not
	// terminal, whatever the limit. Fewer ids than limit: there are no more changes now. A deletion
	// is no change.
	//
	// No change may be missed, also when transactions commit in another order than they began. A
	// change may be returned more than once. ErrBadCursor: the backend does not know the cursor, or
	// not any more; the caller starts again with the empty one.
	ChangedBatches(ctx context.Context, after Cursor, limit int) (ids []string, next Cursor,
		err error)
}

// Waker is implemented by backends that notice the changes of other processes at once. It only
// saves time: who is woken asks ChangedBatches, and so does everybody from time to time.
type Waker interface {
	// WakeOnChange calls wake soon after another process may have changed a batch or given up a
	// leadership, until ctx ends. wake must not block. It may be called more often, and for changes
	// of this process. An error ends it; the caller may call again, unless it is
	// [errors.ErrUnsupported].
	WakeOnChange(ctx context.Context, wake func()) error
}
