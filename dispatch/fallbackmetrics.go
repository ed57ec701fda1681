package dispatch

import "github.com/tidefill/tidefill/dispatch/plan"

var (
	fallbackRequests = counted("tidefill_fallback_requests_total",
		"Interactive requests that the fallback of the pool was sent.", "pool")
	fallbackLines = counted("tidefill_fallback_lines_total",
		"Batch lines that the fallback of the pool was sent.", "pool")
	fallbackTokens = counted("tidefill_fallback_tokens_total", "Tokens of the requests and lines "+
		"that the fallback of the pool has answered.", "pool", "kind")
	fallbackMoney = gauge("tidefill_fallback_money_today", "What the fallback of the pool costs "+
		"on this day (UTC), in the currency of its prices. Absent without money_per_day.", "pool")
	fallbackBudget = gauge("tidefill_fallback_money_per_day", "The most that the fallback of the "+
		"pool may cost per day. Absent without money_per_day.", "pool")
)

// showFallback shows the fallback of a pool; nil: it has none.
func showFallback(s *plan.FallbackStatus, show showGauge) {
	if s == nil {
		return
	}
	show(fallbackRequests, float64(s.Requests), s.Instead)
	show(fallbackLines, float64(s.Lines), s.Instead)
	show(fallbackTokens, float64(s.PromptTokens), s.Instead, "input")
	show(fallbackTokens, float64(s.OutputTokens), s.Instead, "output")
	if s.PerDay > 0 {
		show(fallbackMoney, s.Spent, s.Instead)
		show(fallbackBudget, s.PerDay, s.Instead)
	}
}
