package e2e

// small makes every stage short, so that faults hit them all.
var small = []string{
	"dispatch.chunk_lines=16", "dispatch.plan.look_ahead=48", "dispatch.poll_every=100ms",
	"dispatch.progress_every=50ms",
	"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=12",
	"dispatch.plan.retry.base=20ms", "dispatch.plan.breaker.base=50ms",
	"dispatch.plan.breaker.max=500ms",
}

// with is small and more; a later setting of a key wins.
func with(more ...string) []string { return append(append([]string{}, small...), more...) }
