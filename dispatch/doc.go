// Package dispatch runs batches: it claims their chunks, sends their lines, keeps the answers and
// writes the result files.
//
// It is the driver around the decisions of dispatch/plan, and decides nothing about order or pace
// itself.
//
// # Who owns what
//
// A [Dispatcher] registers with the store and works under that registration until it loses it: a
// session. Within a session
//
//   - the lead (lead.go) asks the store which runners and models this dispatcher may use, so that dispatchers that share a
//     store don't fill the same runner twice. The planner knows no other runners;
//   - the loop (loop.go) is the one goroutine that owns the planner. Everything reaches it through the inbox;
//   - keepers (keeper.go) bring batches from state to state. Each looks at the stored batch and does the next thing that
//     its state calls for, so it can stop anywhere and be done again: by a retry, by a restart, by another dispatcher;
//   - loaders (chunk_load.go) claim chunks and read their lines;
//   - senders (sender.go) post lines and append good answers to the chunk's journal;
//   - the journals' committer tells when results are durable. Only those are counted.
//
// # What a crash leaves
//
// Claims end with the registration, so a restart takes them over at once; opening a chunk's journal
// again tells which lines are done. The rest is sent again: those that were under way, and those
// answered within the last group commit. Result files appear in one step, under ids allotted when
// the batch was made, so that finalizing twice makes the same files.
package dispatch
