package simulator

import (
	"io"
	"time"
)

// Watch is what is told of a run with batch work beyond its figures. Watching
// changes nothing in the run.
type Watch struct {
	// Tape asks for Result.Tape.
	Tape bool
	// Events gets a line for each decision of the planner; nil: nobody reads them.
	Events io.Writer
	// Explain gets why the decisions about Moment fell, where that is in the run; nil: nobody asks.
	Explain io.Writer
	Moment  time.Duration
}
