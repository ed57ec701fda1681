package dispatch

import (
	"context"
	"fmt"
	"math"

	"github.com/tidefill/tidefill/store"
)

// canaryGate keeps all but a batch's first lines back until those are done. Chunks never hold both:
// the layout sees to it.
type canaryGate struct {
	until  int // positions below this are canaries'
	passed bool
}

func newCanaryGate(b *store.Batch) canaryGate {
	return canaryGate{until: b.Options.Canary, passed: b.Options.Canary == 0}
}

// pending reports whether canary chunks are not done.
func (g canaryGate) pending(chunks []store.Chunk) bool {
	for _, c := range chunks {
		if c.First < g.until && !c.Done {
			return true
		}
	}
	return false
}

// verdict says whether the rest may run, and if not, why.
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
		"%d of the %d canary lines failed, more than the share of %.3g that may (tidefill.canary.max_failed_ratio)",
		failed, lines, b.Options.CanaryMaxFailedRatio)
}

// canaryAllows says which chunks of a model may be claimed now, those that begin below the answer:
// canaries' only, or all once the canaries are done well. Zero: none.
func (cl *claimer) canaryAllows(ctx context.Context, r *run, model string) (below int, err error) {
	r.mu.Lock()
	gate, b := r.canary, r.batch
	r.mu.Unlock()
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
		return 0, cl.reconciler.stop(ctx, r.id, "canary_failed", reason)
	}
	r.mu.Lock()
	r.canary.passed = true
	r.mu.Unlock()
	return math.MaxInt, nil
}

// free reports whether there is a canary chunk of the model that this dispatcher doesn't have in
// hand.
func (g canaryGate) free(chunks []store.Chunk, model string, r *run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range chunks {
		if c.First < g.until && !c.Done && c.Model == model && r.chunks[c.Index] == nil {
			return true
		}
	}
	return false
}
