// Package api serves the OpenAI Files, Uploads and Batches API over HTTP.
//
// It validates what users send, stores it through the interfaces of [Store], and reports the
// progress and results of batches. It sends no lines to runners. [Deps.Nudge] notifies dispatchers
// of a new or changed batch; they read everything else from the store.
//
// # The path of a request
//
//	request id ─► metrics, log, panics ─► key ─► route and method ─► handler
//	     every answer has one    │         401 before any look-up     │
//	                             └──────────── errors ◄───────────────┘
//
// Handlers return errors, and one function converts them into OpenAI's error format. A mistake of
// the user is answered with a message that says how to correct it. Any other error is answered as
// an internal error, and the log has its text.
//
// # Uploads
//
// A file is read once. One goroutine reads the connection and scans the bytes while a second writes
// them to the blob store. The two share a few buffers, so the memory of an upload does not depend
// on its size. Blobs are committed, and the file's record is written, only after all checks. An
// upload that is refused, or whose connection breaks, leaves nothing behind.
//
// # Concurrency
//
// All methods of a [Server] may be called concurrently, and several processes may serve one store.
// Besides its counters, a Server keeps in memory only the highest progress that it has shown of
// each running batch. [Server.Run] removes what has expired. It may run in several processes; they
// repeat each other's work.
package api
