// Package workload makes what a simulated pool is asked to do: interactive
// arrivals, and batch jobs.
//
// Arrivals are pulled one by one from a [Stream], in order of time, so a day of
// many replicas needs no list of its requests. A stream begins in one of three
// ways:
//
//   - a recorded trace ([Read]), told once as it was ([Trace.Arrivals]);
//   - a day made from a trace ([Day]): rotated, tiled, superposed and thinned to
//     the shape of a [Curve], never stretched in time, its lengths as they were;
//   - a [Generator] fitted to published statistics ([Conversation],
//     [LongConversation]), which needs no file;
//
// and is then bent by small functions from stream to stream: [Flash], [Retime],
// [Drift], [Share], [Chill], [Label], [Namespace], [Until], [Merge].
//
// Batch work is a list or a stream of jobs ([List], [Generate]). A line of a
// job is a pure function of the job and the line's number ([Job.Line]), so a job
// of any length costs no memory, and lines can be asked for in any order, again,
// or never.
//
// # Randomness
//
// Each cause (arrivals, lengths, the thinning of a copy) draws from a sequence of
// its own, derived from a [Seed] and the cause's name. So two policies face the
// same day, and a change to one cause moves no other. Same seed, same stream, to
// the byte, on any machine (internal/portable says how).
//
// The package is pure: it opens no file (readers take an [io.Reader] and a name
// for their errors), reads no clock and starts no goroutine. A stream has one
// owner. Arrivals may share the memory of Prefix; nobody writes to it.
package workload
