package store

import "context"

// Changes reports which batches have changed.
type Changes interface {
	// ChangedBatches returns, oldest change first, up to limit ids of batches that changed after
	// the given revision, and the revision to ask with next. Revision 0 returns every batch that
	// is not terminal, whatever the limit. No ids: nothing has changed. A deletion is no change.
	ChangedBatches(ctx context.Context, revision int64, limit int) (ids []string, next int64,
		err error)
}
