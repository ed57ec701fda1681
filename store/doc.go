// Package store holds the contracts between Tidefill and whatever keeps its state.
//
// Three kinds of state, three contracts, each with an embedded backend and room for a clustered
// one:
//
//   - [Metadata]: batches, files, uploads, chunk claims and leases. Small rows, compare-and-set, listings by cursor.
//     No row per line: a batch of 50,000 lines is one row and some dozens of chunks.
//   - [Blobs]: the bytes of files and indexes. Written once as a stream, visible only when committed.
//   - [Journals]: the results of a chunk, appended and checksummed. The only truth about progress: every
//     counter is derived from them, and a restart needs nothing else to know which lines are done.
//
// # Fencing
//
// A dispatcher registers as an owner and keeps its lease alive. What it claims carries an epoch,
// which grows with every claim of the same thing. Opening a journal at an epoch fences every lower
// one: an append by a writer that lost its claim is refused with [ErrFenced], and records that such
// a writer may still have squeezed onto the disk are void for readers. So a line is never told
// twice, whatever a paused, partitioned or forgotten process does.
//
// # Time
//
// Contracts take no clock. A backend is opened with its own Now (or uses its server's clock),
// stores whole microseconds in UTC and never compares the times of two machines for anything but
// lease expiry, which fencing makes safe.
//
// The conformance suite for all of this is package storetest; a backend is done when it passes
// unchanged.
package store
