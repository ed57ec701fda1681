package work

import "github.com/tidefill/tidefill/dispatch/plan"

// Flight is a line in flight: the planner's decision to start it on the way to a sender, and its
// result on the way back. The loop reuses it for other lines.
type Flight struct {
	plan.Finished
	Chunk   *Chunk
	Failure Failure // if it did not succeed
	Cancel  CancelHandle
}

// Line returns the line that is sent.
func (f *Flight) Line() *Line { return &f.Chunk.lines[f.Start.Slot] }
