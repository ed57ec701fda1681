package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// dryRunObject answers what would become of a batch. As in a batch, nullable fields are never left
// out.
type dryRunObject struct {
	Object           string       `json:"object"`
	Endpoint         string       `json:"endpoint"`
	CompletionWindow string       `json:"completion_window"`
	ExpiresAt        *int64       `json:"expires_at"`
	Errors           *batchErrors `json:"errors"`
	// the same request would create a batch that runs
	Accepted bool `json:"accepted"`
	forecast
	Reason   *string        `json:"reason"` // why verdict is null
	Lines    int            `json:"lines"`
	Work     *float64       `json:"work_seconds"`
	GPUHours *float64       `json:"gpu_hours"`
	Models   []dryRunModel  `json:"models"`
	Pools    []dryRunPool   `json:"pools"`
	Nearest  *dryRunNearest `json:"nearest"`
	Windows  []dryRunWindow `json:"windows"`
	Affected dryRunAffected `json:"affected"`
}

type dryRunModel struct {
	Model        string   `json:"model"`
	Lines        int      `json:"lines"`
	InputTokens  *int64   `json:"input_tokens"`
	OutputTokens *int64   `json:"output_tokens"`
	Work         *float64 `json:"work_seconds"`
	KnownAnswers *int     `json:"known_answers"`
}

type dryRunPool struct {
	Pool     string  `json:"pool"`
	Replicas int     `json:"replicas"`
	GPUHours float64 `json:"gpu_hours"`
}

// dryRunNearest is the earliest deadline that can be met. Window is null if it is over the limit of
// windows.
type dryRunNearest struct {
	Deadline int64   `json:"deadline"`
	Window   *string `json:"completion_window"`
}

type dryRunWindow struct {
	Window   string        `json:"completion_window"`
	Verdict  store.Verdict `json:"verdict"`
	Feasible bool          `json:"feasible"`
}

// dryRunAffected describes the batches that would get a worse verdict. Those of other tenants are
// only counted.
type dryRunAffected struct {
	Own     int           `json:"own"`
	Others  int           `json:"others"`
	Batches []dryRunOther `json:"batches"` // the first of the own ones
}

type dryRunOther struct {
	ID            string         `json:"id"`
	VerdictBefore *store.Verdict `json:"verdict_before"`
	forecast
}

// maxAffected limits the batches that a dry run lists.
const maxAffected = 100

// readDryRun reads the parameter dry_run.
func readDryRun(v url.Values) (bool, error) {
	text := v.Get("dry_run")
	if text == "" {
		return false, nil
	}
	dry, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid("dry_run", "invalid_value",
			"Invalid 'dry_run': %s is neither 'true' nor 'false'.", quoted(text))
	}
	return dry, nil
}

// dryRun answers POST /v1/batches?dry_run=true: what would become of the batch of a draft. It
// checks all that a create request checks, and stores nothing.
func (s *Server) dryRun(w http.ResponseWriter, r *http.Request, d draft, now time.Time) error {
	ctx := r.Context()
	tenant := tenantOf(ctx)
	if err := s.checkOutput(ctx, tenant, "", d); err != nil {
		return err
	}
	quota := s.openQuota(tenant)
	defer quota.release()
	files, made, err := s.inputs(ctx, quota, tenant, d)
	if err != nil {
		return err
	}
	defer s.removeUnkept(ctx, made)
	b := newBatch(tenant, "", d, files, now)
	faults, err := s.findFaults(ctx, b, files)
	if err != nil {
		return fmt.Errorf("check the inputs of a dry run: %w", err)
	}
	o := dryRunObject{
		Object: "batch.dry_run", Endpoint: b.Endpoint, CompletionWindow: b.Window,
		ExpiresAt: orNullTime(b.Deadline), Errors: showFaults(faults), Lines: b.Counts.Total,
		Accepted: len(faults) == 0, Models: []dryRunModel{}, Pools: []dryRunPool{},
		Windows: []dryRunWindow{}, Affected: dryRunAffected{Batches: []dryRunOther{}},
	}
	for _, m := range b.Models[:min(len(b.Models), maxModels)] {
		o.Models = append(o.Models, dryRunModel{Model: m.Model, Lines: m.Lines})
	}
	p := Preview{Unknown: "The input has errors: the batch would fail at once."}
	if len(faults) == 0 {
		if p, err = s.preview(ctx, b, files, previewTimeout); err != nil {
			return err
		}
	}
	o.Reason = orNull(p.Unknown)
	if p.Unknown == "" {
		o.add(b, p)
		o.Accepted = !s.refuses(b, p)
	}
	return writeJSON(w, o)
}

// add adds a prediction.
func (o *dryRunObject) add(b store.Batch, p Preview) {
	o.forecast = showForecast(p.Forecast)
	if p.Verdict == "" {
		o.Reason = orNull("The batch has no deadline.")
	}
	o.Work = seconds(p.Work)
	hours := 0.0
	for _, pool := range p.Pools {
		o.Pools = append(o.Pools, dryRunPool(pool))
		hours += pool.GPUHours
	}
	o.GPUHours = &hours
	for _, m := range p.Models {
		for i := range o.Models {
			if shown := &o.Models[i]; shown.Model == m.Model {
				shown.InputTokens, shown.OutputTokens = &m.InputTokens, &m.OutputTokens
				shown.Work, shown.KnownAnswers = seconds(m.Work), &m.KnownAnswers
			}
		}
	}
	if !p.Nearest.IsZero() {
		o.Nearest = &dryRunNearest{p.Nearest.Unix(), orNull(windowTo(b.CreatedAt, p.Nearest))}
	}
	for i, window := range standardWindows[:min(len(standardWindows), len(p.Windows))] {
		o.Windows = append(o.Windows, dryRunWindow{window, p.Windows[i],
			p.Windows[i] != store.VerdictInfeasible})
	}
	for _, other := range p.Affected {
		if other.Tenant != b.Tenant {
			o.Affected.Others++
			continue
		}
		if o.Affected.Own++; o.Affected.Own <= maxAffected {
			o.Affected.Batches = append(o.Affected.Batches, dryRunOther{other.ID,
				showForecast(other.Before).Verdict, showForecast(other.After)})
		}
	}
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// windowTo returns the shortest completion window, in round numbers, that a batch needs to end at a
// time or later; empty: it is over the limit.
func windowTo(created, end time.Time) string {
	length := max(end.Sub(created), minWindow)
	unit := time.Hour
	switch {
	case length <= time.Hour:
		unit = time.Minute
	case length <= 6*time.Hour:
		unit = 10 * time.Minute
	}
	length = (length + unit - 1) / unit * unit
	if length > maxWindow {
		return ""
	}
	var text strings.Builder
	for _, part := range []struct {
		unit time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := length / part.unit; n > 0 && (part.unit != day || length > day) {
			fmt.Fprintf(&text, "%d%s", n, part.name)
			length %= part.unit
		}
	}
	return text.String()
}
