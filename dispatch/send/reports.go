package send

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/upstream"
)

// reported counts and logs what an answer's headers say about the runner.
func (t *transport) reported(ctx context.Context, u *upstream.Runner, a openai.Answer) {
	r := a.Report
	t.Metrics.Reported(u.Name, r)
	if r.Dropped != "" && u.LogsDrop(r.Dropped, time.Now()) {
		t.Log.WarnContext(ctx, "a gateway drops requests", "runner", u.Name,
			"reason", string(r.Dropped), "status", a.Status)
	}
}
