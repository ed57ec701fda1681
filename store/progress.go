package store

import (
	"context"
	"time"
)

// Progress is what a dispatcher last said about a running batch. It is for showing, not for
// deciding: the journals are the truth, and a new owner replays them.
type Progress struct {
	Completed, Failed int // durable results; as posted: those of chunks that aren't done yet
	InFlight          int
	Retrying          int   // lines that wait for another attempt
	Attempts          int64 // requests sent, first ones included
	LinesPerSecond    float64
	Waiting           string // why nothing more is started now; empty while it flows
	Leads             bool   // the dispatcher leads a model of the batch, so its Waiting counts
	UpdatedAt         time.Time
}

// Add joins the reports of two dispatchers about one batch.
func (p Progress) Add(q Progress) Progress {
	p.Completed += q.Completed
	p.Failed += q.Failed
	p.InFlight += q.InFlight
	p.Retrying += q.Retrying
	p.Attempts += q.Attempts
	p.LinesPerSecond += q.LinesPerSecond
	newer := q.UpdatedAt.After(p.UpdatedAt)
	if q.Leads && !p.Leads || newer && q.Leads == p.Leads {
		p.Waiting, p.Leads = q.Waiting, q.Leads
	}
	if newer {
		p.UpdatedAt = q.UpdatedAt
	}
	return p
}

// ProgressBoard is where dispatchers post progress and the API reads it.
type ProgressBoard interface {
	// PostProgress replaces what this owner's node said about each of these batches, in one round
	// trip. Completed and Failed speak of unfinished chunks only: the caller leaves a chunk out
	// from the moment its FinishChunk has returned. ErrFenced for a superseded owner; words about
	// deleted batches are dropped. With ErrNoSpace nothing is kept, but Progress in this process
	// knows of it all the same: a full disk is just when users ask why nothing moves.
	PostProgress(ctx context.Context, o Owner, progress map[string]Progress) error
	// Progress adds up, for each of these batches, the tallies of its done chunks and what the
	// nodes with a living lease last said. Batches without either are absent.
	Progress(ctx context.Context, batches []string) (map[string]Progress, error)
}
