package claim

import (
	"context"
	"math"

	"github.com/tidefill/tidefill/dispatch/work"
)

// canaryAllows returns the position below which chunks of a model may be claimed: canaries only, or
// all once enough canaries have succeeded. Zero: none.
func (cl *Claimer) canaryAllows(
	ctx context.Context, r *work.Run, model string,
) (below int, err error) {
	gate, b := r.Canaries()
	if gate.Passed {
		return math.MaxInt, nil
	}
	chunks, err := cl.Metadata.Chunks(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	if gate.Pending(chunks) {
		if gate.Free(chunks, model, r) {
			return gate.Until, nil
		}
		return 0, nil
	}
	if reason := gate.Verdict(&b, chunks); reason != "" {
		return 0, cl.Stopper.Stop(ctx, r.ID, "canary_failed", reason)
	}
	r.PassCanaries()
	return math.MaxInt, nil
}
