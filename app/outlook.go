package app

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// outlook predicts for the API what would become of batches, by what dispatch knows of lines and
// scaling of pools.
type outlook struct {
	dispatcher *dispatch.Dispatcher
	driver     *driver.Driver
}

// Preview implements api.Outlook.
func (o *outlook) Preview(ctx context.Context, h api.Hypothetical) (p api.Preview, err error) {
	demand, err := o.dispatcher.Estimate(ctx, batchOf(h))
	if err != nil {
		return unknownYet(err)
	}
	preview, err := o.driver.Preview(ctx, demand)
	if err != nil {
		return unknownYet(err)
	}
	var sure time.Time
	for i, j := range preview.Jobs {
		if j.Unknown != "" {
			return api.Preview{Unknown: "Nothing can be predicted: " + j.Unknown + "."}, nil
		}
		p.Forecast = p.Forecast.Join(store.Forecast{Verdict: store.Verdict(j.Verdict),
			Finish: j.Finish, Earliest: j.Earliest, Latest: j.Latest, OneMore: j.OneMore})
		if i == 0 {
			p.Nearest, sure = j.Feasible, j.Sure
		}
		p.Nearest, sure = later(p.Nearest, j.Feasible), later(sure, j.Sure)
	}
	p.Verdict = doubted(p, h.Deadline)
	for _, window := range h.Windows {
		p.Windows = append(p.Windows, verdictAt(h.Created.Add(window), p.Nearest, sure))
	}
	for _, d := range demand {
		p.Work += milliseconds(d.Work)
		p.Models = append(p.Models, api.PreviewModel{Model: d.Key.Model,
			InputTokens:  int64(d.Prompt * float64(d.Lines)),
			OutputTokens: int64(d.Output * float64(d.Lines)),
			Work:         milliseconds(d.Work), KnownAnswers: d.Answered})
	}
	for _, x := range preview.Pools {
		p.Pools = append(p.Pools, api.PreviewPool{Pool: x.Pool,
			Replicas: max(0, x.Replicas-x.Without), GPUHours: x.Hours})
	}
	for _, w := range preview.Worse {
		p.Affected = append(p.Affected, api.AffectedBatch{ID: w.Job, Tenant: preview.Tenants[w.Job],
			Before: store.Forecast{Verdict: store.Verdict(w.Before)},
			After:  store.Forecast{Verdict: store.Verdict(w.After)}})
	}
	return p, nil
}

// doubted returns the verdict of a preview. A batch that can meet its deadline only by the least
// work that its lines may have is at risk once it exists, and infeasible if nine of ten like it
// end after the deadline: who asks before can still choose another window.
func doubted(p api.Preview, deadline time.Time) store.Verdict {
	if p.Verdict == store.VerdictAtRisk && !deadline.IsZero() && p.Earliest.After(deadline) &&
		(p.Nearest.IsZero() || p.Nearest.After(deadline)) {
		return store.VerdictInfeasible
	}
	return p.Verdict
}

// unknownYet returns a preview without a prediction if the daemon has just started.
func unknownYet(err error) (api.Preview, error) {
	if errors.Is(err, dispatch.ErrNotLoaded) {
		return api.Preview{Unknown: "The batches are not loaded yet; try again in a moment."}, nil
	}
	return api.Preview{}, err
}

// batchOf returns a batch with what dispatch estimates its work by.
func batchOf(h api.Hypothetical) *store.Batch {
	b := &store.Batch{Tenant: h.Tenant, CreatedAt: h.Created, Deadline: h.Deadline,
		StartBy: h.StartBy, Options: h.Options, Resolved: h.Resolved}
	for _, m := range h.Models {
		b.Models = append(b.Models, store.ModelLines{Model: m.Model, Lines: m.Lines})
		b.PromptBytes += m.PromptBytes
		b.MaxTokens += m.MaxTokens
	}
	return b
}

// verdictAt returns whether a deadline would be met, of which the nearest that can be expected to
// be met and the nearest that surely would are known. Zero: there is none.
func verdictAt(deadline, nearest, sure time.Time) store.Verdict {
	switch {
	case nearest.IsZero() || deadline.Before(nearest):
		return store.VerdictInfeasible
	case sure.IsZero() || deadline.Before(sure):
		return store.VerdictAtRisk
	}
	return store.VerdictOK
}

// later returns the later of two times. Zero is never.
func later(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return time.Time{}
	}
	if b.After(a) {
		return b
	}
	return a
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}
