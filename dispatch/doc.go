// Package dispatch runs batches: it claims their chunks, sends their lines, records the answers and
// writes the result files. Package dispatch/plan decides which line starts where and when; this
// package does what it decides.
//
// # Parts
//
// A [Dispatcher] registers with the store and works until it loses the registration: a session
// (session.go). A session connects these parts, each of which owns its state:
//
//   - lease renews the registration, and acquires the leadership of this process's share of the
//     groups of runners and models (groups.go, team.go), so that processes that share a store never
//     fill the same runner twice;
//   - reconciler brings batches from state to state. It reads the stored batch and does the next
//     thing that its state requires, so it can stop anywhere and do it again. Its first step,
//     cutting into chunks, is the admitter's; its last, writing the result files, the finalizer's;
//   - claimer claims chunks, several at a time for a fast pool (claimahead.go), reads their lines,
//     and gives chunks back (release.go);
//   - finisher marks complete chunks done, several in one step;
//   - loop is the one goroutine that owns the planner. All others send messages to its inbox;
//   - transport sends lines to runners, with a pool of goroutines;
//   - recorder writes results to the chunks' journals, and counts them once they are durable;
//   - progress publishes the state of pools and batches.
//
// # The path of a line
//
// From the input file to the output file:
//
//	admitter.admit             orders the batch's lines and cuts them into chunks   admit.go
//	claimer.load               claims a chunk and reads its lines                   claimer.go
//	loop.start                 gives a line that the planner starts to a sender     loop.go
//	transport.send             calls request, which posts it, as a stream or not    transport.go
//	openai.Client.Send         posts it and parses the answer once                  openai/
//	recorder.recordAnswer      appends the answer to the chunk's journal            recorder.go
//	loop.finished              reports to the planner; records a failure            loop.go
//	recorder.committed         counts the result when it is durable                 recorder.go
//	finisher.finish            marks the chunk done after its last result           finisher.go
//	finalizer.finalize         calls gather, which finds all results, and           finalize.go
//	resultFiles.write          writes them to the output file in input order        resultfiles.go
//
// # What a crash leaves
//
// Claims end with the registration, so a restart takes them over at once. The journal of a chunk
// contains the lines that are done. All others are sent again: those in flight, and those whose
// answers were not durable yet. Result files appear in one step, with ids that were chosen when the
// batch was created, so writing them twice makes the same files.
package dispatch
