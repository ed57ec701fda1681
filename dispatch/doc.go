// Package dispatch runs batches: it claims their chunks, sends their lines, records the answers and
// writes the result files. Package dispatch/plan decides which line starts where and when; this
// package does what it decides.
//
// # Parts
//
// A [Dispatcher] registers with the store and works until it loses the registration: a session
// (session.go). A session connects these parts (connect.go), each of which owns its state:
//
//   - lead: the lease renews the registration, and acquires the leadership of this process's share
//     of the groups of runners and models, so that processes that share a store never fill the same
//     runner twice;
//   - the reconciler brings batches from state to state. It reads the stored batch and does the
//     next thing that its state requires, so it can stop anywhere and do it again. Its first step,
//     cutting into chunks, is claim's; its last, writing the result files, finish's;
//   - claim: the claimer claims chunks, reads their lines, and gives chunks back;
//   - the loop is the one goroutine that owns the planner. All others send messages to its inbox;
//   - send: a pool of goroutines sends lines to runners;
//   - finish: the recorder writes results to the chunks' journals and counts them once they are
//     durable, and the finisher marks complete chunks done;
//   - the progress publishes the state of pools and batches.
//
// What they work on is in package work, which says who may change it: batches, chunks, lines, and
// the messages to the loop. What is known of runners is in package upstream. These packages import
// work and upstream, and none of each other: each says in interfaces what it needs of the others.
//
// # The path of a line
//
// From the input file to the output file:
//
//	Admitter.Admit             orders the batch's lines and cuts them into chunks   claim
//	Claimer.load               claims a chunk and reads its lines                   claim
//	loop.start                 gives a line that the planner starts to a sender     loop.go
//	transport.send             sends it in the first variant that is understood     send
//	openai.Client.Send         posts it and parses the answer once                  openai
//	Recorder.RecordAnswer      appends the answer to the chunk's journal            finish
//	loop.finished              reports to the planner; records a failure            loop.go
//	Recorder.Committed         counts the result when it is durable                 finish
//	Finisher.Finish            marks the chunk done after its last result           finish
//	Finalizer.Finalize         calls gather, which finds all results, and           finish
//	resultFiles.write          writes them to the output file in input order        finish
//
// # What a crash leaves
//
// The journal of a chunk contains the lines that are done. All others are sent again: those in
// flight, and those whose answers were not durable yet. The functions of a restart
// are these. poll and LeadUntil run at the same time:
//
//	lead.Register            registers the node, which frees its earlier claims     lead
//	reconciler.poll          adds all batches of the store to the queue             reconciler.go
//	reconciler.advance       gives the planner a batch, with the lines left of it   reconciler.go
//	Lease.LeadUntil          leads runners, and sends RunnerUp events to the loop   lead
//	Claimer.load             claims a chunk again, at a higher epoch                claim
//	Chunk.Open               replays its journal: those lines have results          work
//	Chunk.Fetch              reads the other lines, for the planner                 work
//
// After SIGTERM, session.shutdown drains, flushes the journals and unregisters, so that nothing has
// to wait. After SIGKILL the claims last until the same node registers again or their lease ends.
// Attempts are counted in the planner, so they begin again.
//
// Result files appear in one step, with ids that were chosen when the batch was created, so writing
// them twice makes the same files.
package dispatch
