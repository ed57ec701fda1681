package store

// State is the status of a batch, named as in the OpenAI API. Pause is a flag beside it.
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
