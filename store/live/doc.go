// Package live holds what processes that share a store exchange for speed, and what may be
// lost: nothing is decided by it, and everything in it is known again within seconds.
//
//   - [Snapshots]: what the leader of a pool has decided, for all processes to show.
//   - [Events]: which batches have changed, so that nobody needs to wait for the next poll.
//   - [Windows]: the number of requests of each tenant, over all processes.
//   - Progress is a [store.ProgressBoard].
//
// A [Memory] is the twin within one process. It is the default, and what others fall back to. The
// truth stays in the store: who misses an event finds the change by its cursor, and who finds no
// snapshot shows the last one that it has, with its age.
//
// Package livetest is the conformance suite.
package live
