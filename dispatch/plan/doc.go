// Package plan decides which line starts on which runner and when, whether a failed line is tried
// again, and which runner gets no lines for a while. It combines the order of package scheduler
// with the allowance of package flowcontrol.
//
// [Planner.Step] receives one event and returns actions. The planner reads no clock, starts no
// goroutine, sends nothing and logs nothing, so the daemon and the simulator run the same code. One
// goroutine owns a planner.
//
// # Model
//
// A batch has one job per model. A pool is the set of runners that serve the same models. Each pool
// has two instances of scheduler.Queue and a flowcontrol.Controller. The first queue decides whose
// line starts next, the second whose chunk is read next. The controller limits the lines of each
// runner.
//
// # Which line goes to which runner
//
// After each event, Planner.fill fills the free slots of each pool:
//
//   - pool.mostFree chooses the runner with the most free slots, the first by ID among equals. A
//     runner's free slots are its allowance, of lines and prompt tokens, less what it carries. It
//     has none while it stops lines, drains or pauses. While its breaker is open it has one at
//     times, for a trial.
//   - Planner.next takes the job that the first queue names, and Planner.take the next line of it.
//   - A line does not go to a runner that has failed it while another one takes lines. Then
//     pool.freeFor chooses among the others, or the line is put aside until one has a free slot.
//   - Planner.try starts trial lines on failing runners.
//   - Planner.start appends the line to [Actions].Start.
//
// Prefix caches do not change the choice. Behind a gateway the choice only attributes the line, and
// the gateway chooses the engine. The store keeps no runner of a line. A recording (serve --record)
// has the runner of each request, as a number.
//
// # Fallbacks
//
// A pool may have a fallback: a server elsewhere that is paid for each token. It gets only what the
// pool has no place for: interactive requests that would be refused, and lines of batches whose
// deadline can't be met. fallback.go has the rules.
//
// # Claims, retries and runners that leave
//
// The planner holds the lines of chunks that its driver has claimed. It requests another chunk
// ([Claim]) when the job that is next has no lines left. So an urgent new job starts at the next
// free slot after its lines were read, and other jobs use the slots until then.
//
// A runner that leaves the deployment uses no slot of the others. If it returns, the lines that it
// still has in flight count again.
//
// A line that waits for another attempt uses no slot. An answer 429 or 503 (a shed) is not charged
// as an attempt, nor is a runner that cannot be reached. A line that was in flight when several
// engines died is given up, because it probably causes the deaths.
package plan
