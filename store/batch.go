package store

import (
	"encoding/json"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Batch is a batch with all that users see of it and that dispatchers need to run it.
type Batch struct {
	ID     string
	Tenant string
	// Version grows by one with every change; UpdateBatch compares it.
	Version int64

	State  State
	Paused bool
	// Ending is the terminal state that follows, of a finalizing or cancelling batch; empty before.
	Ending State
	// FinishInFlight lets lines in flight of a cancelling batch finish; false: they end at once.
	FinishInFlight bool `json:",omitempty"`
	// Reason is a sentence that explains why the batch was stopped early; empty: it was not.
	Reason string

	Endpoint string
	Window   string // completion_window as given
	Metadata map[string]string
	Options  Options
	// OptionsJSON is the `tidefill` object as the user sent it, without the members named in Apart;
	// nil: there was none.
	OptionsJSON json.RawMessage `json:",omitempty"`
	// Apart names the members of the `tidefill` object that only Parameters holds, since they may
	// be large.
	Apart []string `json:",omitempty"`
	// Resolved is what the request's template and profile stood for; nil: it named none.
	Resolved *Resolved `json:",omitempty"`
	// Parameters is read by CreateBatch. Methods that return a batch leave it nil; see
	// Batches.Parameters.
	Parameters *Parameters `json:"-"`

	Inputs  []Input
	Models  []ModelLines // in order of first appearance over all inputs
	Outputs []Output     // ids are assigned at creation and shown once the files are written
	Errors  []batchfile.Fault

	CreatedAt, InProgressAt, FinalizingAt, CompletedAt, FailedAt, ExpiredAt, CancellingAt,
	CancelledAt time.Time
	// Deadline is the time by which the batch must be done; zero: best effort.
	Deadline time.Time
	// StartBy is the time by which the first line must be sent; zero: none.
	StartBy time.Time
	// FirstSentAt is when the first line was sent, of a batch with a StartBy; zero: none was, or
	// the batch has none.
	FirstSentAt time.Time `json:",omitzero"`
	// StartMissed reports that no line was in flight by StartBy.
	StartMissed bool `json:",omitempty"`

	// Changes are what users have done to the batch, the last MaxChanges, oldest first.
	Changes []Change `json:",omitempty"`

	Counts Counts
	// NotRun counts the lines of Counts.Failed that got no answer because the batch ended first. It
	// is set at the end.
	NotRun int `json:",omitempty"`
	// Failures are the most frequent causes of failed lines, set at the end.
	Failures []Failure `json:",omitempty"`
	// Delivery is what became of the results in the bucket of Options.OutputURL. It is set at the
	// end; nil: there is no such bucket, or no line was ever to be sent.
	Delivery *Delivery        `json:",omitempty"`
	Usage    *batchfile.Usage // sums over all answers, set at the end
	// Attempts counts the requests sent over all lines, set at the end; until then see Progress.
	Attempts int64
	// PromptBytes and MaxTokens estimate the work of all lines, in prompt bytes and output tokens,
	// for ordering before any is measured.
	PromptBytes, MaxTokens int64
}

// Change is what a user has done to a batch.
type Change struct {
	At   time.Time
	What string // paused, resumed, cancelled by a user
	// By is the beginning of the hash of the user's key, as logs have it. Empty: no key was needed.
	By string `json:",omitempty"`
}

// MaxChanges limits the changes that a batch remembers.
const MaxChanges = 20

// Note appends a change.
func (b *Batch) Note(c Change) {
	b.Changes = append(b.Changes, c)
	b.Changes = b.Changes[max(0, len(b.Changes)-MaxChanges):]
}

// EndedAt returns the time at which the batch became terminal; zero: it is not.
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

// Input is one input file of a batch. Lines are numbered across all inputs; First is the number of
// the file's first line.
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

// Output is a pair of result files: of one input, or of all inputs together (Input < 0).
type Output struct {
	Input             int
	OutputID, ErrorID string
	// HasOutput and HasErrors report which files exist. They are set when the files are written,
	// and the ids are shown to users from then on. Empty files are not stored.
	HasOutput, HasErrors bool
}

// Delivery says whether results were written to the bucket that a user named.
type Delivery struct {
	Delivered bool
	Error     string `json:",omitempty"` // for users: why they were not
}

// Counts counts the lines of a batch, from its journals.
type Counts struct {
	Total, Completed, Failed int
}
