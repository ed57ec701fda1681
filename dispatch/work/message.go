package work

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// Message is a message to the loop: one of the types below, or a [*Flight] for a line that is back.
type Message interface{ isMessage() }

// PlannerEvent is an event for the planner.
type PlannerEvent struct{ Event plan.Event }

// ChunkLoaded answers a claim of the planner.
type ChunkLoaded struct {
	plan.Loaded
	Chunk *Chunk // nil: none was claimed
}

// ChunkFinished reports a chunk that the store knows to be done.
type ChunkFinished struct{ Chunk *Chunk }

// ChunksCounted holds the chunks of a batch as the store has them. No chunk of the batch was
// finished between the reading and the sending.
type ChunksCounted struct {
	Batch  store.Batch
	Chunks []store.Chunk
}

// BatchStopped starts no more lines of a batch, and evicts those in flight after the grace time.
type BatchStopped struct {
	Run   *Run
	Grace time.Duration
}

// ModelsUnserved gives back the chunks of models that no runner of this process serves any more.
// Those with lines in flight stay.
type ModelsUnserved struct{ Models map[string]bool }

// ResultsBlocked says why results can't be written, so that no line may start; plan.Flowing: they
// can.
type ResultsBlocked struct{ Reason plan.Reason }

// PlannerAsked has the loop call a function with the planner. It must neither block nor keep the
// planner.
type PlannerAsked struct {
	Ask func(now time.Time, planner *plan.Planner)
}

// DrainAsked starts no more lines. The loop ends when none is in flight.
type DrainAsked struct{}

func (*Flight) isMessage()        {}
func (PlannerEvent) isMessage()   {}
func (ChunkLoaded) isMessage()    {}
func (ChunkFinished) isMessage()  {}
func (ChunksCounted) isMessage()  {}
func (BatchStopped) isMessage()   {}
func (ModelsUnserved) isMessage() {}
func (ResultsBlocked) isMessage() {}
func (PlannerAsked) isMessage()   {}
func (DrainAsked) isMessage()     {}
