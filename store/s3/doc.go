// Package s3 stores blobs and journal segments in a bucket of an S3-compatible object storage.
//
//	PREFIX/blobs/KEY         committed blobs
//	PREFIX/segments/NAME     journal segments
//	PREFIX/cluster           marker, by which the installation recognizes its prefix
//
// An object appears as a whole or not at all, so a blob is written as one object: with one request
// if it is small, else in parts, which S3 joins at Commit. Parts of writers that crashed are
// collected by their age.
//
// # Memory
//
// A writer buffers one part, a reader the windows that it has read last. All writers and all
// readers together have a limit each. A reader without room reads no more than it was asked for. A
// writer without room waits for a while, and then goes on, since those that have the room may wait
// for it.
//
// # Requests
//
// Each request is tried several times, with growing random pauses, if the storage is overloaded,
// fails, or transfers nothing for a while. All requests may be repeated. An error names the remedy
// if an operator can do something.
package s3
