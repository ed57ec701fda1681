// Package api serves the OpenAI Files, Uploads and Batches API over HTTP.
//
// It is the boundary to users: it judges what they send, keeps it through the contracts of package
// store, and shows how their batches fare. It never runs a line. A new or changed batch is made
// known through [Deps.Nudge]; whoever dispatches reads everything else from the store.
//
// # The way of a request
//
//	request id ─► metrics, log, panics ─► key ─► route and method ─► handler
//	     every answer has one    │         401 before any look-up     │
//	                             └──────────── errors ◄───────────────┘
//
// Handlers return errors; one table turns them into OpenAI's envelope. What the user did wrong is
// an [*Error] that says how to mend it. Anything unknown is "internal" outside, and whole in the
// log.
//
// # Uploads
//
// A file is read once. One goroutine takes the bytes off the wire and scans them while a second
// writes them to the blob store, through a few buffers that go round between the two: memory is
// bounded whatever the size. Blobs are committed, and the row written, only after everything was
// judged, so a refused, cut or abandoned upload leaves nothing behind.
//
// # Concurrency
//
// A [Server] has no state of its own besides its counters and the highest progress shown of each
// running batch; all methods may be called at once, by many processes on one store. [Server.Run]
// sweeps what has expired; several may run, they only repeat each other's work.
package api
