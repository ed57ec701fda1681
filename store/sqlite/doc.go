// Package sqlite stores batches, files, claims, progress and idempotency keys in one SQLite file.
//
// It needs no server and no cgo. The file is in WAL mode with synchronous=FULL, so a write that was
// reported as done survives a power failure. Several processes may open the same file.
//
// # Layout
//
// A row has the columns that queries compare; the rest of an object is one JSON document. Filters
// of batches other than state and time (models, metadata) use batch_tags, which has one row for
// each batch and tag, with the batch's state and both sort keys. So every listing is a scan of an
// index in the order of the listing, whatever it filters by.
//
// # Concurrency
//
// One session writes and some read. A session is a connection with its prepared statements, and
// belongs to one method call at a time. Writers wait for the one session of the process, which
// costs less than SQLite's own polling for its lock.
package sqlite
