package work

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// PlanBatch returns the planner's view of a batch, without the lines of its models.
func PlanBatch(b *store.Batch) plan.Batch {
	window := time.Duration(0)
	if !b.Deadline.IsZero() {
		window = b.Deadline.Sub(b.CreatedAt)
	}
	startBy := b.StartBy
	if !b.FirstSentAt.IsZero() {
		startBy = time.Time{}
	}
	return plan.Batch{
		ID: b.ID, Tenant: b.Tenant, Priority: b.Options.Priority, Window: window,
		Created: b.CreatedAt, StartBy: startBy, Deadline: b.Deadline, Paused: b.Paused,
		MaxConcurrency: b.Options.MaxConcurrency, RetryAttempts: b.Options.RetryAttempts,
		RetryOn: b.Options.RetryOn,
	}
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
