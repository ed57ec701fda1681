// Package sqlite keeps batches, files, claims and everything else that stands in rows in one SQLite
// file.
//
// It is the embedded backend of [store.Metadata]: no server, no cgo. The file is in WAL mode with
// synchronous=FULL, so what a method has reported as done survives a power cut. Several processes
// may open the same file.
//
// # Layout
//
// A row has the columns that queries look at; the rest of an object is one JSON document. What
// users filter batches by besides state and time (models, metadata) stands in batch_tags, one row
// per batch and tag, each with the batch's state and both sort keys. So every listing is a walk
// along an index that has the wanted order already, whatever it filters by.
//
// # Concurrency
//
// One session writes, some read; a session is a connection with its prepared statements, and
// belongs to one method call at a time. Writers queue up for the one session in process, which
// costs less than SQLite's own polling for its lock.
package sqlite
