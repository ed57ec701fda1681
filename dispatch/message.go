package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// message is a message to the loop: one of the types below, or a *flight for a line that is back.
type message interface{ isMessage() }

// plannerEvent is an event for the planner.
type plannerEvent struct{ event plan.Event }

// chunkLoaded answers a claim of the planner.
type chunkLoaded struct {
	plan.Loaded
	chunk *chunk // nil: none was claimed
}

// chunkFinished reports a chunk that the store knows to be done.
type chunkFinished struct{ chunk *chunk }

// chunksCounted holds the chunks of a batch as the store has them. No chunk of the batch was
// finished between the reading and the sending.
type chunksCounted struct {
	batch  store.Batch
	chunks []store.Chunk
}

// batchStopped starts no more lines of a batch, and evicts those in flight after the grace time.
type batchStopped struct {
	run   *run
	grace time.Duration
}

// modelsUnserved gives back the chunks of models that no runner of this process serves any more.
// Those with lines in flight stay.
type modelsUnserved struct{ models map[string]bool }

// resultsBlocked says why results can't be written, so that no line may start; plan.Flowing: they
// can.
type resultsBlocked struct{ reason plan.Reason }

// plannerAsked has the loop call a function with the planner. It must neither block nor keep the
// planner.
type plannerAsked struct {
	ask func(now time.Time, planner *plan.Planner)
}

// drainAsked starts no more lines. The loop ends when none is in flight.
type drainAsked struct{}

func (*flight) isMessage()        {}
func (plannerEvent) isMessage()   {}
func (chunkLoaded) isMessage()    {}
func (chunkFinished) isMessage()  {}
func (chunksCounted) isMessage()  {}
func (batchStopped) isMessage()   {}
func (modelsUnserved) isMessage() {}
func (resultsBlocked) isMessage() {}
func (plannerAsked) isMessage()   {}
func (drainAsked) isMessage()     {}
