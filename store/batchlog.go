package store

import (
	"time"
	"unicode/utf8"
)

// LogArgs returns what a log says of a batch, for slog: who submitted it, its first model, and its
// size. It has nothing that users may want to hide.
func (b *Batch) LogArgs() []any {
	args := []any{"batch_id", b.ID, "tenant", b.Tenant}
	if len(b.Models) > 0 {
		args = append(args, "model", shortName(b.Models[0].Model))
	}
	if len(b.Models) > 1 {
		args = append(args, "models", len(b.Models))
	}
	return append(args, "lines", b.Lines())
}

// Lines counts the lines of the inputs.
func (b *Batch) Lines() (n int) {
	for _, in := range b.Inputs {
		n += in.Lines
	}
	return n
}

// EndLogArgs returns what a log says of a batch that has ended.
func (b *Batch) EndLogArgs() []any {
	args := append(b.LogArgs(), "state", b.State, "completed", b.Counts.Completed, "failed",
		b.Counts.Failed, "duration", b.EndedAt().Sub(b.CreatedAt).Round(time.Millisecond))
	if len(b.Failures) > 0 { // no samples: they may repeat what users wrote
		f := b.Failures[0]
		args = append(args, "most_failed", f.Count, "status", f.Status, "failure_code", f.Code,
			"runner", f.Runner)
	}
	if b.Delivery != nil {
		args = append(args, "delivered", b.Delivery.Delivered)
	}
	if len(b.Errors) > 0 {
		args = append(args, "errors", len(b.Errors), "code", b.Errors[0].Code)
	}
	return args
}

// shortName shortens a name that a user chose.
func shortName(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}
