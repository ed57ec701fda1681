// Package plan joins order and allowance: which line starts where and when, what becomes of a line
// that failed, and which runner is left alone for a while.
//
// The [Planner] is a plain value with one method that matters, [Planner.Step]: one event in,
// actions out. It reads no clock, starts no goroutine, sends nothing and logs nothing, so that the
// daemon and the simulator run the same code. One goroutine owns a planner.
//
// # Model
//
// A batch has one job per model. A pool is the set of runners that serve the same models; each pool
// has a scheduler.Queue, which says whose line goes next, another, which says whose chunk is read
// next, and a flowcontrol.Controller, which says how many lines each runner may carry. The planner
// holds the lines of the chunks that its driver claimed. It asks for more ([Claim]) when the job
// whose turn it is has none left, so an urgent newcomer overtakes at the next free slot; until its
// lines are here, others go on.
//
// A runner that leaves the deployment takes no slot from the others, and should it come back, what
// it still carries counts.
//
// A line that waits for another attempt holds no slot. A shed (429, 503) charges no attempt, and
// neither does a runner that can't be reached. A line that was under way in several engine deaths
// is given up, lest it take the pool down forever.
package plan
