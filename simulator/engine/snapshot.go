package engine

import "time"

// Counters are totals since the start of the engine.
type Counters struct {
	PromptTokens    uint64 // of requests that have produced their first token
	PrefilledTokens uint64 // computed in prefill, repeated ones included
	GeneratedTokens uint64
	Preemptions     uint64
	PrefixQueries   uint64 // tokens looked up in the prefix cache
	PrefixHits      uint64 // tokens found there
	Finished        uint64 // requests
	Aborted         uint64 // requests
	Iterations      uint64
	Busy            time.Duration // time spent in iterations
}

// Snapshot is the state that the engine's metrics show.
type Snapshot struct {
	Running       int
	Waiting       int
	PendingTokens int // known tokens that are not computed, of waiting and running requests
	KVBlocks      int
	KVBlocksUsed  int // by running requests; idle cached blocks count as free
	Counters
}

// KVUtilization returns the share of KV blocks in use, 0 to 1.
func (s Snapshot) KVUtilization() float64 { return float64(s.KVBlocksUsed) / float64(s.KVBlocks) }

// Snapshot returns the state at now. It includes the iterations of the present run that have ended
// by then.
func (e *Engine) Snapshot(now time.Time) Snapshot {
	s := Snapshot{
		Running: len(e.running), Waiting: len(e.waiting), PendingTokens: e.pending,
		KVBlocks: e.kv.total, KVBlocksUsed: e.kv.used(), Counters: e.counters,
	}
	if !e.busy || len(e.ends) == 1 {
		return s
	}
	done := e.endedIterations(now)
	if done == 0 {
		return s
	}
	s.Iterations += uint64(done)
	s.Busy += e.ends[done-1]
	s.GeneratedTokens += uint64(done * len(e.running))
	s.KVBlocksUsed += e.newBlocks(min(done+1, len(e.ends)))
	return s
}
