package console

import (
	"fmt"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// fallback is what a pool has done instead of another one, since the process started.
type fallback struct {
	Instead      string `json:"instead"`
	Requests     int    `json:"requests"`
	Lines        int    `json:"lines"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	// Spent and PerDay are the cost of this day (UTC) and the most that it may be; null: no such
	// limit is configured.
	Spent  *float64 `json:"money_today"`
	PerDay *float64 `json:"money_per_day"`
}

func fallbackOf(s *plan.FallbackStatus) *fallback {
	if s == nil {
		return nil
	}
	shown := &fallback{Instead: s.Instead, Requests: s.Requests, Lines: s.Lines,
		InputTokens: s.PromptTokens, OutputTokens: s.OutputTokens}
	if s.PerDay > 0 {
		shown.Spent, shown.PerDay = &s.Spent, &s.PerDay
	}
	return shown
}

// sentence says what the pool is for.
func (f *fallback) sentence() string {
	return fmt.Sprintf("A server elsewhere. It answers only what the pool %s has no place for.",
		f.Instead)
}
