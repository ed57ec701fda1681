// Package workload generates the requests of a simulated pool: interactive arrivals and batch jobs.
//
// Arrivals are pulled one by one from a [Stream], in order of time, so a day of many replicas needs
// no list of its requests. A stream starts in one of three ways:
//
// - a recorded trace ([Read]), played back once ([Trace.Arrivals]);
// - a trace resampled to any length and rate ([ResampledTrace]): rotated, repeated, overlaid and
// thinned to the shape of a [Curve], but never stretched in time, with its lengths unchanged;
// - a [Generator] fitted to published statistics ([Conversation], [LongConversation]), which needs
// no file;
//
// and is then transformed by functions from stream to stream: [AddSurges], [Retime]
// (with [Bursts]), [ScalePrompts], [SharePrefixes], [DropPrefixes], [Label], [Merge], [Until].
//
// Batch work is a list or a stream of jobs ([List], [Generate]). A line of a job is a pure function
// of the job and the line's number ([Job.Line]), so a job of any length needs no memory, and lines
// can be asked for in any order, more than once, or never.
//
// # Randomness
//
// Each cause of randomness (arrivals, lengths, the thinning of a copy) draws from a sequence of its
// own, derived from a [Seed] and the cause's name. So two policies get the same traffic, and a
// change to one cause changes no other. The same seed gives the same stream, to the byte, on any
// machine (see internal/portable).
//
// The package is pure: it opens no file (readers take an [io.Reader] and a name for their errors),
// reads no clock and starts no goroutine. A stream has one owner. Arrivals may share the memory of
// Prefix; nobody writes to it.
package workload
