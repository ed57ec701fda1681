package dispatch

import (
	"cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
)

var (
	shadowAllowance = gauge("tidefill_shadow_allowance_lines",
		"Batch lines that the shadow policy of a pool would allow to be in flight.",
		"pool", "policy")
	shadowDifference = gauge("tidefill_shadow_difference_lines",
		"Lines that the shadow policy would allow, less those that the pool's policy allows.",
		"pool", "policy")
	shadowLimited = gauge("tidefill_shadow_limited",
		"1 for the reason why the shadow policy would allow no more; none: nothing limits it.",
		"pool", "policy", "reason")
)

// showShadow shows what the shadow policy of a pool would allow.
func showShadow(pool string, p *plan.PoolStatus, show showGauge) {
	s := p.Shadow
	if s == nil {
		return
	}
	show(shadowAllowance, float64(s.Lines), pool, s.Policy)
	show(shadowDifference, float64(s.Lines-p.Limit), pool, s.Policy)
	show(shadowLimited, 1, pool, s.Policy, cmp.Or(string(s.Reason), "none"))
}
