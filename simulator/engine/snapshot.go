package engine

import "time"

// Counters only grow.
type Counters struct {
	PromptTokens    uint64 // of requests that have produced their first token
	PrefilledTokens uint64 // computed in prefill, those computed again included
	GeneratedTokens uint64
	Preemptions     uint64
	PrefixQueries   uint64 // tokens looked up in the prefix cache
	PrefixHits      uint64 // tokens found there
	Finished        uint64 // requests
	Aborted         uint64 // requests
	Iterations      uint64
	Busy            time.Duration // time spent in iterations
}

// Snapshot is the state an operator could read from the engine's metrics.
type Snapshot struct {
	Running       int
	Waiting       int
	PendingTokens int // known tokens still to be computed, of waiting and running requests
	KVBlocks      int
	KVBlocksUsed  int // held by running requests; idle cached blocks count as free
	Counters
}

// KVUtilization is the share of KV blocks in use, 0 to 1.
func (s Snapshot) KVUtilization() float64 { return float64(s.KVBlocksUsed) / float64(s.KVBlocks) }

// Snapshot reads the engine at now, with the iterations of a run that have
// ended by then counted and those that have not left out.
func (e *Engine) Snapshot(now time.Time) Snapshot {
	s := Snapshot{
		Running: len(e.running), Waiting: len(e.waiting), PendingTokens: e.pending,
		KVBlocks: e.kv.total, KVBlocksUsed: e.kv.used(), Counters: e.counters,
	}
	if !e.busy || len(e.ends) == 1 {
		return s
	}
	done := e.done(now)
	if done == 0 {
		return s
	}
	s.Iterations += uint64(done)
	s.Busy += e.ends[done-1]
	s.GeneratedTokens += uint64(done * len(e.running))
	s.KVBlocksUsed += e.growth(min(done+1, len(e.ends)))
	return s
}
