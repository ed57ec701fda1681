package autoscale

import "time"

// static keeps every pool at its maximum: capacity for the peak, always paid.
type static struct{}

func newStatic(Config) Controller { return static{} }

func (static) Name() string { return "static" }

func (static) Step(now time.Time, s State) Decision {
	d := Decision{Wake: now.Add(time.Minute)}
	for _, p := range s.Pools {
		d.Pools = append(d.Pools, Wanted{Pool: p.ID, Replicas: p.Max, Shown: p.Max, Reason: ReasonFixed})
	}
	return d
}
