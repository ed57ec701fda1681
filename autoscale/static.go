package autoscale

import "time"

// static keeps every pool at its maximum.
type static struct{ step time.Duration }

func newStatic(cfg Config, _ *tracker) Controller { return static{cfg.Step} }

func (static) Name() string { return "static" }

func (c static) Step(now time.Time, s State) Decision {
	d := Decision{Wake: now.Add(c.step)}
	for i := range s.Pools {
		p := &s.Pools[i]
		d.Pools = append(d.Pools, Wanted{Pool: p.Name, Replicas: p.Max,
			Reported: withDraining(p, p.Max), Reason: ReasonFixed})
	}
	return d
}
