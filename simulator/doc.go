// Package simulator runs a policy for batch work on a simulated pool in virtual time, and measures
// what it does to the pool's interactive users, its batches and their deadlines.
//
// Engine models (simulator/engine) serve interactive arrivals and the lines of batch jobs
// (simulator/workload). The daemon's own code orders the lines, grants them capacity and places
// them: the simulator feeds a plan.Planner the same events as the dispatcher and does what it
// returns. There is no second implementation of a policy, and no branch in a policy for the
// simulator.
//
// No policy knows how long an answer will be. plan.Line, which is all that the planner gets of a
// line, has no field for it. The engine gets the length when the line is submitted to it.
//
// Events happen in order of (time, sequence), and each cause of randomness has a sequence of its
// own. So the same setup gives the same result to the byte, and two policies get the same traffic.
// The package is pure: no clock, no goroutine, no files. A run belongs to one goroutine.
package simulator
