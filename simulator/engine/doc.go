// Package engine models one LLM inference engine: the time of an iteration, and what its scheduler
// puts into it.
//
// The cost model of package costmodel gives the time of an iteration from its tokens and the
// context they attend to. The scheduler follows vLLM V1: a token budget per iteration, running
// requests first, chunked prefill, KV memory in blocks with a prefix cache, and preemption by
// recomputation when no block is free.
//
// The package is pure. It reads no clock, starts no goroutine and uses only the randomness of the
// *rand.Rand that it gets. The simulator runs it in virtual time, the emulator in real time. A
// driver repeats three calls:
//
//	end, busy := e.Begin(now) // schedule an iteration, which ends at end
//	...                       // until then: Submit, Abort, Snapshot
//	it := e.End()             // at end: which requests got tokens, which finished
//
// or calls [Engine.Advance]. With Config.MaxRun above 1, several iterations in which requests only
// decode are planned as one run. A run is cut short at the end of the present iteration when
// something arrives, so the results are the same to the nanosecond as with single iterations, noise
// included.
//
// An Engine has one owner and no lock. Iteration and Snapshot do not show how many tokens an
// unfinished request will produce: only Request has that number.
package engine
