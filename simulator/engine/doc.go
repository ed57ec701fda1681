// Package engine models one LLM inference engine: how long an iteration takes
// and what its scheduler puts into it.
//
// The law (law.go) gives the time of one iteration from the tokens in it and
// the context they attend to. The scheduler follows vLLM V1: a token budget
// per iteration, running requests first, chunked prefill, KV memory in blocks
// with a prefix cache, and preemption by recomputation when blocks run out.
//
// The package is pure. It reads no clock, starts no goroutine and draws only
// from the *rand.Rand it is given, so the simulator can run it in virtual time
// and the emulator in real time. A driver repeats three calls:
//
//	end, busy := e.Begin(now) // schedule; the work is done at end
//	...                       // until then: Submit, Abort, Snapshot
//	it := e.End()             // at end: who got tokens, who finished
//
// or lets [Engine.Advance] do so up to an instant. With Config.MaxRun above 1 a
// stretch of pure decoding, where the law is an arithmetic series, is planned as
// one run: the requests are looked at once for all of its iterations. A run is
// cut short at the end of the iteration under way when something arrives, so the
// outcome is the same to the nanosecond as stepping one by one, noise included.
//
// An Engine has one owner and no lock. What observers get (Iteration,
// Snapshot) never tells how long an unfinished request will go on: only Request
// knows, and it stays inside.
package engine
