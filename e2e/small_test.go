package e2e

// small makes every stage short, so that faults hit them all.
var small = []string{
	"dispatch.tuning.chunk_lines=16", "dispatch.tuning.look_ahead=48",
	"dispatch.tuning.poll_every=100ms",
	"dispatch.tuning.progress_every=50ms",
	"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=12",
	"dispatch.retry.tuning.base=20ms", "dispatch.tuning.breaker.base=50ms",
	"dispatch.tuning.breaker.max=500ms",
}

// with is small and more; a later setting of a key wins.
func with(more ...string) []string { return append(append([]string{}, small...), more...) }
