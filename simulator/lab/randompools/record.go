package randompools

import (
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// Record is a pool, what the policy did to it, and the reference.
type Record struct {
	Number     int                `json:"number"`
	RunSeed    uint64             `json:"run_seed"`
	About      string             `json:"about"`
	Dimensions []random.Dimension `json:"dimensions"`
	// Drawn is the number of scenarios that were drawn until one was valid.
	Drawn int `json:"drawn"`
	Outcome
	// Reference is nil if none was searched.
	Reference *Reference `json:"reference,omitempty"`
	// Oracle is the harvest of oracle G, in tokens. 0: it was not searched, or harvests nothing.
	Oracle int64 `json:"oracle_g_tokens,omitempty"`
}

// Outcome is what a policy did to a pool.
type Outcome struct {
	// Loss and WorstLoss are in points: of the run, and of its worst five minutes.
	Loss      float64 `json:"loss_points"`
	WorstLoss float64 `json:"worst_5_minutes_loss_points"`
	// Harvest is in useful batch tokens.
	Harvest     int64   `json:"harvest_tokens"`
	Lines       int     `json:"lines"`
	Wasted      int64   `json:"wasted_tokens"`
	Evictions   int     `json:"evictions"`
	Requests    int     `json:"requests"` // interactive
	Attainment  float64 `json:"attainment"`
	Alone       float64 `json:"no_batch_attainment"`
	MissedTTFT  int     `json:"missed_ttft"`
	MissedTPOT  int     `json:"missed_tpot"`
	TTFT        float64 `json:"ttft_p99_ms"`
	TTFTAlone   float64 `json:"no_batch_ttft_p99_ms"`
	TPOT        float64 `json:"tpot_p99_ms"`
	TPOTAlone   float64 `json:"no_batch_tpot_p99_ms"`
	WorstLossAt float64 `json:"worst_5_minutes_loss_at_s"`
}

// Reference is the best static setting of a pool that costs at most a point: so many lines on each
// of so many runners. Without a line, none is safe.
type Reference struct {
	Lines   int     `json:"lines"`
	Runners int     `json:"runners"`
	Harvest int64   `json:"harvest_tokens"`
	Loss    float64 `json:"loss_points"`
	Runs    int     `json:"runs"` // of the search
	// Rerun is the same setting in a run with other random numbers. Nil: there is no setting, or in
	// that run the pool misses its objectives without batch work, or nobody comes.
	Rerun *Rerun `json:"rerun,omitempty"`
}

// Rerun is a static setting in another run than the one for which it was chosen. The best one of a
// run is partly the luckiest.
type Rerun struct {
	Harvest int64   `json:"harvest_tokens"`
	Loss    float64 `json:"loss_points"`
}

func newRecord(p random.Pool) Record {
	return Record{Number: p.Number, RunSeed: p.Seed, About: p.Scenario.About,
		Dimensions: p.Dimensions, Drawn: p.Drawn}
}

func newOutcome(r simulator.Result) Outcome {
	return Outcome{
		Loss: r.Loss, WorstLoss: r.WorstLoss, WorstLossAt: r.WorstLossAt,
		Harvest: r.Batch.Useful, Lines: r.Batch.Lines, Wasted: r.Batch.Wasted,
		Evictions: r.Batch.Evictions,
		Requests:  r.Interactive.Requests, Attainment: r.Interactive.Attainment,
		Alone:      r.NoBatch.Attainment,
		MissedTTFT: r.Interactive.MissedTTFT, MissedTPOT: r.Interactive.MissedTPOT,
		TTFT: r.Interactive.TTFT.P99, TTFTAlone: r.NoBatch.TTFT.P99,
		TPOT: r.Interactive.TPOT.P99, TPOTAlone: r.NoBatch.TPOT.P99,
	}
}

// The limits that a policy is judged by.
const (
	safeLoss   = 1  // points, of a run
	worstLimit = 10 // points, of five minutes
	wellEnough = 0.9
	minRatio   = 0.01
)

func (r Record) safe() bool { return r.Loss <= safeLoss }

// ratio returns the harvest relative to that of the reference, at least minRatio, so that a
// single pool without harvest does not make a geometric mean 0. known is false without a reference,
// or if it harvests nothing: then nothing is lost by harvesting nothing.
func (r Record) ratio() (ratio float64, known bool) {
	if r.Reference == nil || r.Reference.Harvest == 0 {
		return 0, false
	}
	return max(minRatio, float64(r.Harvest)/float64(r.Reference.Harvest)), true
}
