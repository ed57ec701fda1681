package dispatch

import (
	"context"
	"fmt"
	"math"

	"github.com/tidefill/tidefill/store"
)

// canaryGate holds all but a batch's first lines back until those are done. No chunk has lines of
// both kinds, see cut.
type canaryGate struct {
	until  int // lines at positions below this are canaries
	passed bool
}

func newCanaryGate(b *store.Batch) canaryGate {
	return canaryGate{until: b.Options.Canary, passed: b.Options.Canary == 0}
}

// pending reports whether a chunk of canaries is not done.
func (g canaryGate) pending(chunks []store.Chunk) bool {
	for _, c := range chunks {
		if c.First < g.until && !c.Done {
			return true
		}
	}
	return false
}

// verdict returns why the other lines may not run; empty: they may.
func (g canaryGate) verdict(b *store.Batch, chunks []store.Chunk) (stop string) {
	lines, failed := 0, 0
	for _, c := range chunks {
		if c.First < g.until {
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

// canaryAllows returns the position below which chunks of a model may be claimed: canaries only, or
// all once enough canaries have succeeded. Zero: none.
func (cl *claimer) canaryAllows(ctx context.Context, r *run, model string) (below int, err error) {
	gate, b := r.canaries()
	if gate.passed {
		return math.MaxInt, nil
	}
	chunks, err := cl.metadata.Chunks(ctx, r.id)
	if err != nil {
		return 0, err
	}
	if gate.pending(chunks) {
		if gate.free(chunks, model, r) {
			return gate.until, nil
		}
		return 0, nil
	}
	if reason := gate.verdict(&b, chunks); reason != "" {
		return 0, cl.stopper.stop(ctx, r.id, "canary_failed", reason)
	}
	r.passCanaries()
	return math.MaxInt, nil
}

// free reports whether there is a chunk of canaries of the model that this process does not hold.
func (g canaryGate) free(chunks []store.Chunk, model string, r *run) bool {
	for _, c := range chunks {
		if c.First < g.until && !c.Done && c.Model == model && !r.holds(c.Index) {
			return true
		}
	}
	return false
}
