package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// State is the status of a batch as the OpenAI API names it. Pause is a flag beside it.
//
//	validating ──► in_progress ──► finalizing ──► completed | expired | failed
//	     │              │               │
//	     ├──► failed    └───────┬───────┘
//	     └──────────────► cancelling ──► cancelled
type State string

const (
	Validating State = "validating"
	InProgress State = "in_progress"
	Finalizing State = "finalizing"
	Completed  State = "completed"
	Failed     State = "failed"
	Expired    State = "expired"
	Cancelling State = "cancelling"
	Cancelled  State = "cancelled"
)

// Terminal reports whether a batch in this state never changes again.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Expired || s == Cancelled
}

// Batch is a batch as its users know it, plus what dispatchers need to run it.
type Batch struct {
	ID     string
	Tenant string
	// Version grows by one with every change; UpdateBatch compares it.
	Version int64

	State  State
	Paused bool
	// Ending is the terminal state that a finalizing or cancelling batch is on its way to; empty
	// before.
	Ending State
	// Reason says in words why a batch was stopped early; empty otherwise.
	Reason string

	Endpoint string
	Window   string // completion_window as given
	Metadata map[string]string
	Options  Options
	// OptionsJSON is the `tidefill` object as the user sent it, to be shown again, without the
	// members named in Apart; nil when there was none.
	OptionsJSON json.RawMessage `json:",omitempty"`
	// Apart names the members of the `tidefill` object that only Parameters holds, since they may
	// be large. Empty: none.
	Apart []string `json:",omitempty"`
	// Parameters is for CreateBatch alone. What else returns a batch leaves it nil; see
	// Batches.Parameters.
	Parameters *Parameters `json:"-"`

	Inputs  []Input
	Models  []ModelLines // in order of first appearance over all inputs
	Outputs []Output     // ids allotted at creation, shown once written
	Errors  []batchfile.Fault

	CreatedAt, InProgressAt, FinalizingAt, CompletedAt, FailedAt, ExpiredAt, CancellingAt,
	CancelledAt time.Time
	// Deadline is when the batch must be done; zero: best effort.
	Deadline time.Time
	// StartBy is when the first line must be under way; zero: whenever.
	StartBy time.Time

	Counts Counts
	Usage  *batchfile.Usage // sums over all answers, set at the end
	// Attempts counts the requests sent over all lines, set at the end; until then see Progress.
	Attempts int64
	// Work is the estimated work of all lines, in prompt bytes and output tokens, for ordering
	// before any is measured.
	PromptBytes, MaxTokens int64
}

// EndedAt is when a terminal batch became so; zero before.
func (b *Batch) EndedAt() time.Time {
	switch b.State {
	case Completed:
		return b.CompletedAt
	case Failed:
		return b.FailedAt
	case Expired:
		return b.ExpiredAt
	case Cancelled:
		return b.CancelledAt
	default:
		return time.Time{}
	}
}

// Options are the extensions of the create request, resolved: durations have become times, defaults
// are filled in.
type Options struct {
	Priority     int // higher goes first under the priority policy
	StopAtFailed int // stop once this many lines have failed; 0: no limit
	// stop when more than this share of the finished lines has failed; 0: no limit
	MaxFailedRatio float64
	MaxTotalTokens int64 // stop when the answers' usage exceeds this; 0: no limit
	RetryAttempts  int   // attempts per line, the first included; 0: the daemon's default
	// HTTP statuses that are worth another attempt; nil: the daemon's default
	RetryOn []int
	Canary  int // lines that decide whether the rest runs; 0: none
	// CanaryMaxFailedRatio is the share of the canary lines that may fail without stopping the
	// batch; 0: none may.
	CanaryMaxFailedRatio float64
	GroupBy              string // none, model or prefix
	MaxConcurrency       int    // lines in flight at most; 0: no limit of its own
	OutputPerInput       bool   // one output and error file per input instead of joined ones
	OutputLife           time.Duration
	RetryOf              string // the batch whose failed lines these are
}

// Parameters is what may be large of a create request. It is kept beside the batch, so that
// listings and dispatchers, which hold many batches, don't hold it. It never changes.
type Parameters struct {
	OptionsJSON json.RawMessage // the `tidefill` object, whole
	Defaults    []ParameterRule
	Overrides   []ParameterRule
}

// ParameterRule sets top-level body parameters of the lines it applies to: all, those of one url,
// those of one model.
type ParameterRule struct {
	URL, Model string // empty: any
	Parameters map[string]json.RawMessage
}

// Input is one input file of a batch. Lines are numbered through all inputs; First is the number of
// its first.
type Input struct {
	FileID            string
	BlobKey, IndexKey string
	First, Lines      int
}

// ModelLines counts the lines of one model.
type ModelLines struct {
	Model string
	Lines int
}

// Output is a pair of result files: of one input, or of the batch as a whole (Input < 0).
type Output struct {
	Input             int
	OutputID, ErrorID string
	// Written once the files stand; only then do the ids mean something to users. Empty files
	// aren't kept.
	HasOutput, HasErrors bool
}

// Counts are lines, derived from the journals.
type Counts struct {
	Total, Completed, Failed int
}

// BatchOrder is what a listing is sorted by.
type BatchOrder string

const (
	// ties, here and below: in order of CreateBatch, or its reverse
	ByCreation BatchOrder = "created_at"
	ByDeadline BatchOrder = "deadline" // batches without a deadline come last in either direction
)

// BatchQuery selects a page of a tenant's batches. Zero fields don't filter, no Limit means all.
// Bounds of times are excluded; a batch without a deadline lies within no bounds of it.
type BatchQuery struct {
	After     string
	Limit     int
	Order     BatchOrder // empty: ByCreation
	Ascending bool

	States                        []State
	Model                         string
	MetadataKey, MetadataValue    string // the key alone, or key and value
	CreatedAfter, CreatedBefore   time.Time
	DeadlineAfter, DeadlineBefore time.Time
}

// Batches keeps batches.
type Batches interface {
	// CreateBatch stores b with Version 1 and its Parameters, if it has any, and the files that
	// were made for it, all in one step. ErrExists when an id is taken; ErrNotFound when b isn't
	// terminal and the file of one of its inputs is gone, or its bytes are being removed.
	CreateBatch(ctx context.Context, b Batch, files ...File) error
	// Parameters reads what CreateBatch was given; the zero Parameters when it was given none.
	// ErrNotFound when there is no such batch.
	Parameters(ctx context.Context, id string) (Parameters, error)
	// Batch reads one. An empty tenant reads across tenants; so do dispatchers.
	Batch(ctx context.Context, tenant, id string) (Batch, error)
	// UpdateBatch writes b if the stored version is still b.Version, and returns it with the next
	// one. ErrConflict if not. A terminal batch is frozen: an update of one is ErrConflict,
	// whatever its version. ErrNotFound if b.Tenant has no such batch.
	UpdateBatch(ctx context.Context, b Batch) (Batch, error)
	// FinishBatch writes the terminal batch b and creates the files, in one step. It is UpdateBatch
	// for the owner that holds the named lock at the epoch: ErrFenced when another owner has got
	// the lock since. ErrConflict, besides what makes it one for UpdateBatch, when the bytes of a
	// file have been dropped.
	FinishBatch(ctx context.Context, o Owner, lock string, epoch int64, b Batch,
		files []File) (Batch, error)
	ListBatches(ctx context.Context, tenant string, q BatchQuery) (Page[Batch], error)
	// ListBatchIDs is ListBatches for who reads the batches one by one, as they may be large.
	ListBatchIDs(ctx context.Context, tenant string, q BatchQuery) (Page[string], error)
	// DeleteBatch removes a terminal batch with its chunks and returns it; ErrConflict while it
	// lives.
	DeleteBatch(ctx context.Context, tenant, id string) (Batch, error)
	// ChangedBatches returns, oldest change first, up to limit ids of batches that changed after
	// the given revision, and the revision to ask with next. Revision 0 returns every batch that
	// isn't terminal, whatever the limit: what a dispatcher starts from. No ids: nothing has
	// changed. A deleted batch is no change.
	ChangedBatches(ctx context.Context, revision int64, limit int) (ids []string, next int64,
		err error)
	// StaleBatches returns up to limit terminal batches that ended before the given time, for
	// retention: their ID and Tenant alone.
	StaleBatches(ctx context.Context, endedBefore time.Time, limit int) ([]Batch, error)
}

// Modify reads a batch, lets change edit it and writes it back, again and again until nobody
// interfered. An error from change is returned as it is and nothing is written. A terminal batch is
// ErrConflict.
func Modify(
	ctx context.Context, batches Batches, tenant, id string, change func(*Batch) error,
) (Batch, error) {
	for {
		b, err := batches.Batch(ctx, tenant, id)
		if err != nil {
			return Batch{}, err
		}
		frozen := b.State.Terminal()
		if err := change(&b); err != nil {
			return b, err
		}
		if frozen {
			return b, fmt.Errorf("modify batch %s, which is %s: %w", id, b.State, ErrConflict)
		}
		updated, err := batches.UpdateBatch(ctx, b)
		if !errors.Is(err, ErrConflict) {
			return updated, err
		}
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
	}
}
