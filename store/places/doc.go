// Package places opens the storages of profiles, in which result files of batches are, beside the
// blobs of the backend, and the buckets that users name.
//
// A [store.Storage] is part of the record of a batch or file. [Places.Of] returns its blobs at
// once; the first call of one opens a client. A client stays open until the files with its
// credentials change, or the storage refuses them.
//
// # Keys
//
// The blobs of a batch are below [store.ResultsOf], whose end is the batch's id. So several
// installations may use one bucket: none removes what a batch of another one has written. Objects
// of [Places.Shared] have the names that users give them; nothing is removed among them.
//
// # A storage that is away
//
// Every error is a [store.StorageError], except ErrNotFound and the end of a context. A storage
// that does not answer is asked again after a while, by one caller; all others get the last error
// without delay. So neither users nor batches of other storages wait for it.
package places
