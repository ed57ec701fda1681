package e2e

// small makes every stage short, so that faults hit all of them.
var small = []string{
	"dispatch.tuning.chunk_lines=16", "dispatch.tuning.look_ahead=48",
	"dispatch.tuning.poll_every=100ms",
	"dispatch.tuning.progress_every=50ms",
	"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=12",
	"dispatch.retry.tuning.base=20ms", "dispatch.tuning.breaker.base=50ms",
	"dispatch.tuning.breaker.max=500ms",
}

// with returns small and further settings. The last setting of a key takes effect.
func with(more ...string) []string { return append(append([]string{}, small...), more...) }
