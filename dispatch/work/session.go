package work

import (
	"context"
	"log/slog"

	"github.com/tidefill/tidefill/store"
)

// Session holds what the parts of a session share. It never changes.
type Session struct {
	Owner   store.Owner // this process, as it is registered
	Log     *slog.Logger
	Inbox   *Inbox // of the loop
	Runs    *Runs
	Tasks   *Tasks
	Memory  *Memory
	Batches *Queue[string]          // to reconcile
	Lose    context.CancelCauseFunc // ends the session
}
