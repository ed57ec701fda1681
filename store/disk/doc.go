// Package disk stores blobs and journals in a directory.
//
//	blobs/<key>                      committed blobs
//	journals/<batch>/<index>.journal the results of one chunk
//	tmp/<process>/                   blobs being written
//	nodes/<node>.lock                locked by the process that runs under the node's name
//	reserve                          space that is released when the medium is full
//
// # Journals
//
// A journal is one append-only file of checksummed frames. Opening it at an epoch appends a fence.
// Readers ignore frames of lower epochs after it. So the late frames of a writer that lost its
// claim, in this process or another, have no effect, and the writer detects the loss at its next
// commit, when it reads the frames before its own. A file is never truncated: readers skip the rest
// of a frame that a power failure or a full disk left, and search for the next intact one.
//
// # Group commit
//
// Append copies a frame into its journal's buffer and returns. One goroutine per Store collects the
// journals that have frames to write, writes each with one call, syncs several at the same time and
// notifies their owners. A journal whose commit failed keeps its frames, and the goroutine tries
// again every second.
package disk
