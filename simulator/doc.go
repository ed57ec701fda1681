// Package simulator tells what a policy for batch work does to a pool, in virtual
// time: its interactive users, its batches and their deadlines.
//
// A plant of engine models (simulator/engine) serves interactive arrivals and the
// lines of batch jobs (simulator/workload). The lines are ordered, granted and
// placed by the daemon's own code: the simulator feeds a plan.Planner the events
// that the dispatcher would, and does what it says. There is no second
// implementation of a policy, and no branch in one for the simulator's sake.
//
// No policy can see how long an answer will be: plan.Line, which is all that the
// planner gets of a line, has no place for it. The plant draws the answer's length
// when the engine takes the line.
//
// Events happen in order of (time, sequence) and each cause of randomness has a
// sequence of its own, so the same setup gives the same result to the byte, and
// two policies face the same day. The package is pure: no clock, no goroutine, no
// files. A run belongs to one goroutine.
package simulator
