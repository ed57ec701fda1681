// Package disk keeps blobs and journals in a directory.
//
//	blobs/<key>                      committed blobs
//	journals/<batch>/<index>.journal the results of one chunk
//	tmp/<process>/                   blobs being written
//	nodes/<node>.lock                held by the process that runs under the node's name
//	reserve                          room that is given up when the medium is full
//
// # Journals
//
// A journal is one append-only file of checksummed frames. Opening one at an epoch appends a fence;
// from there on frames of lower epochs are void for every reader. So a writer that was overtaken,
// in this process or another, harms nothing by what it appends late, and finds out at its next
// commit by looking at what stands before its own frames. A file is never truncated: whatever a
// power cut or a full disk left of a frame is skipped by searching for the next whole one.
//
// # Group commit
//
// Append copies a frame into its journal's buffer and returns. One goroutine per Store collects the
// journals that have something to write, writes each with one call, makes several durable at the
// same time and tells their owners. A journal whose commit was refused keeps its bytes and tries
// again every second.
package disk
