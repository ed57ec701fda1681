package store

import (
	"encoding/json"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

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
