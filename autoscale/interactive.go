package autoscale

import "time"

// interactive wants the replicas that the forecast traffic needs. Batches use their free capacity.
type interactive struct{ tracker *tracker }

func newInteractive(_ Config, t *tracker) Controller { return &interactive{t} }

func (*interactive) Name() string { return "interactive" }

func (c *interactive) Step(now time.Time, s State) Decision {
	c.tracker.observe(now, s)
	return c.tracker.decide(now, s, forTraffic, c.tracker.removal)
}
