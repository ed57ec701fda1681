package work

import (
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// CanaryGate holds all but a batch's first lines back until those are done. No chunk has lines of
// both kinds.
type CanaryGate struct {
	Until  int // lines at positions below this are canaries
	Passed bool
}

func newCanaryGate(b *store.Batch) CanaryGate {
	return CanaryGate{Until: b.Options.Canary, Passed: b.Options.Canary == 0}
}

// Pending reports whether a chunk of canaries is not done.
func (g CanaryGate) Pending(chunks []store.Chunk) bool {
	for _, c := range chunks {
		if c.First < g.Until && !c.Done {
			return true
		}
	}
	return false
}

// Verdict returns why the other lines may not run; empty: they may.
func (g CanaryGate) Verdict(b *store.Batch, chunks []store.Chunk) (stop string) {
	lines, failed := 0, 0
	for _, c := range chunks {
		if c.First < g.Until {
			lines += c.Tally.Completed + c.Tally.Failed
			failed += c.Tally.Failed
		}
	}
	if float64(failed) <= b.Options.CanaryMaxFailedRatio*float64(lines) {
		return ""
	}
	return fmt.Sprintf(
		"%d of the %d canary lines failed, the limit is a share of %.3g "+
			"(tidefill.canary.max_failed_ratio)",
		failed, lines, b.Options.CanaryMaxFailedRatio)
}

// Free reports whether there is a chunk of canaries of the model that this process does not hold.
func (g CanaryGate) Free(chunks []store.Chunk, model string, r *Run) bool {
	for _, c := range chunks {
		if c.First < g.Until && !c.Done && c.Model == model && !r.Holds(c.Index) {
			return true
		}
	}
	return false
}
