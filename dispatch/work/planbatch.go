package work

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// PlanBatch returns the planner's view of a batch, without the lines of its models. pools are those
// that there are.
func PlanBatch(b *store.Batch, pools *registry.Snapshot) plan.Batch {
	window := time.Duration(0)
	if !b.Deadline.IsZero() {
		window = b.Deadline.Sub(b.CreatedAt)
	}
	startBy := b.StartBy
	if !b.FirstSentAt.IsZero() {
		startBy = time.Time{}
	}
	put := plan.Batch{
		ID: b.ID, Tenant: b.Tenant, Priority: b.Options.Priority, Window: window,
		Created: b.CreatedAt, StartBy: startBy, Deadline: b.Deadline, Paused: b.Paused,
		MaxConcurrency: b.Options.MaxConcurrency, RetryAttempts: b.Options.RetryAttempts,
		RetryOn: b.Options.RetryOn, Backoff: b.Options.Backoff, Preemptible: b.Options.Preemptible,
		CheckAttempts: b.Options.CheckAttempts,
	}
	place(&put, b, pools)
	return put
}

// place sets which pools the batch may use.
func place(put *plan.Batch, b *store.Batch, pools *registry.Snapshot) {
	claim := registry.Claim{NoSpot: b.Options.NoSpot, Providers: b.Options.Providers}
	if r := b.Resolved; r != nil && r.Template != "" {
		claim.Template = registry.Key{Name: r.Template, Version: r.Version}
		claim.Mode = registry.Mode(r.Mode)
		if r.Target != nil {
			put.Pools = []string{TargetPool(r)}
			return
		}
	}
	var why registry.Unplaced
	put.Pools, why = pools.Place(claim)
	put.Nowhere = map[registry.Unplaced]plan.Reason{registry.NoDeployment: plan.NoDeployment,
		registry.NoOpenPool: plan.NoOpenPool}[why]
}

// TargetPool returns the name of the pool of an external template. If its server or key was changed
// since, it has another one: a batch stays with those that it was created with. The budget is that
// of the server, so batches share it, though some were created with another one.
func TargetPool(r *store.Resolved) string {
	server := *r.Target
	server.RequestsPerMinute, server.TokensPerMinute = 0, 0
	target, err := json.Marshal(server)
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	digest := fnv.New32a()
	digest.Write(target)
	for _, m := range r.Models {
		io.WriteString(digest, "\x00"+m)
	}
	return fmt.Sprintf("%s@%s (%08x)", r.Template, r.Version, digest.Sum32())
}

// bytesPerToken estimates tokens from prompt bytes, since there is no tokenizer.
const bytesPerToken = 3.6

// PlanModels estimates the tokens of each model's lines that are left: the batch's sums, divided by
// lines.
func PlanModels(b *store.Batch, left func(model string) int) []plan.ModelLines {
	total := 0
	for _, m := range b.Models {
		total += m.Lines
	}
	models := make([]plan.ModelLines, 0, len(b.Models))
	for _, m := range b.Models {
		lines := left(m.Model)
		share := float64(lines) / float64(max(1, total))
		models = append(models, plan.ModelLines{
			Model: m.Model, Lines: lines,
			PromptTokens: int64(share * float64(b.PromptBytes) / bytesPerToken), MaxTokens: int64(
				share * float64(b.MaxTokens)),
		})
	}
	return models
}
