// Package work holds the state of the batches that a process works on, and who may change it. The
// parts of package dispatch change it by the methods of this package alone, so each mutex is locked
// in the file of its struct.
//
// # State
//
//   - [Run] is a batch: what was read of it, the chunks that are held, the counts of results, and
//     whether its lines may start. [Runs] holds those of a session.
//   - [Chunk] is a claimed group of lines with its journal. The run's mutex guards its counts.
//   - [Source] and [Line] are the open input and a line of it, with the order of the lines.
//   - [Flight] is a line on its way to a sender and back.
//   - [Memory] limits the bytes of lines, answers and results.
//   - [Session] holds what the parts of a session share.
//   - [Inbox] holds the messages to the loop, [Queue] work for several goroutines, and [Tasks] runs
//     what must end before a session does.
//
// # Who changes what
//
//	Runs.Update, Run.Stop, Run.Close       the reconciler, which reads batches from the store
//	Run.Open, NextChunk, Hold, GiveBack    the claimer
//	Run.Appended, Committed, CountFailure  the recorder
//	MarkDone                               the finisher
//	Run.Count, Outdate                     the counter, when a process begins to lead
//	Run.NoteStart, State, Chunk.InFlight   the loop alone
//	Line.CountRequest                      the sender that has the line
//	Line.Record                            the sender of a good answer, the loop for a failure
//
// A line belongs to one goroutine at a time: to the claimer until its chunk is loaded, then to the
// loop, and to a sender while it is in flight. The Inbox and the senders' queue pass it on.
//
// # Order
//
// A run sends some messages while it is locked, and [Run.UnlessStopped] lets others do so: what
// tells the planner of a batch comes before the message that the batch has stopped. Else the
// planner would take the batch for a new one.
package work
