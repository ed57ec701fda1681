package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// PoolOutcomes are what the interactive users of a pool have felt, and what batch work has done
// there. Its counts only grow, until the pool or its controller is another one.
type PoolOutcomes struct {
	ID string // of the pool, as in PoolStatus
	flowcontrol.Judged
	// Allowed is the share of interactive requests that batch work may make late. 0: flow control
	// promises nothing.
	Allowed float64
	// Lines counts those that have their result, and LineTokens the input and output tokens of
	// those that succeeded.
	Lines, LineTokens int64
}

// Outcomes returns the outcomes of all pools, in the order of Pools.
func (p *Planner) Outcomes() []PoolOutcomes {
	all := make([]PoolOutcomes, 0, len(p.pools))
	for _, pool := range p.pools {
		o := PoolOutcomes{ID: pool.id, Judged: pool.outcomes.judged, Lines: pool.outcomes.lines,
			LineTokens: pool.outcomes.lineTokens}
		if judge, judges := pool.flow.(flowcontrol.Judge); judges {
			o.Judged = judge.Judged()
		}
		flow := &pool.controlled
		if flow.Shared && flowcontrol.NeedsOf(flow.Policy).Protects && pool.instead == "" {
			o.Allowed = flow.SLO.Late
		}
		all = append(all, o)
	}
	return all
}

// outcomes are those of a pool. Users are counted here if the controller does not do so.
type outcomes struct {
	judged             flowcontrol.Judged
	firstTokens, token flowcontrol.Growth
	busy               time.Time // when lines were last seen in flight
	lines, lineTokens  int64
}

// besideLines is the time after the last line for which interactive requests count as beside lines:
// those that are answered now were in the pool for about that time.
const besideLines = 10 * time.Second

// read takes over a reading of the pool's gateway. Of requests beside lines it is not known which
// were late because of them.
func (o *outcomes) read(now time.Time, g *flowcontrol.Reading, inFlight int) {
	if inFlight > 0 {
		o.busy = now
	}
	beside := !o.busy.IsZero() && now.Sub(o.busy) <= besideLines
	for _, one := range []struct {
		growth *flowcontrol.Growth
		counts flowcontrol.Attainment
		to     *flowcontrol.Judgement
	}{
		{&o.firstTokens, g.TTFT, &o.judged.FirstTokens},
		{&o.token, g.TPOT, &o.judged.Tokens},
	} {
		requests, late, _ := one.growth.Since(one.counts)
		if beside {
			one.to.Requests += requests
			one.to.Late += late
		} else {
			one.to.Add(requests, late, 0)
		}
	}
}

// done counts a line that has its result.
func (o *outcomes) done(f *Finished) {
	o.lines++
	if f.Outcome == Succeeded {
		o.lineTokens += int64(f.InputTokens) + int64(f.OutputTokens)
	}
}
