package autoscale

import (
	"slices"
	"time"
)

// coldStarts learns how long a pool's replicas take from being asked for to being ready.
type coldStarts struct {
	cfg     StartConfig
	pending map[string]pending
	took    []float64 // seconds, of the last starts
}

type pending struct {
	since   time.Time
	givenUp bool
}

// observe looks at the replicas. A start that is given up counts with the time it has taken; one
// that vanishes says nothing.
func (c *coldStarts) observe(now time.Time, replicas []Replica) (giveUp []string) {
	expected := c.expect()
	next := map[string]pending{}
	for _, r := range replicas {
		before, was := c.pending[r.ID]
		switch {
		case r.Phase == Starting:
			p := pending{since: r.Since, givenUp: was && before.givenUp}
			if now.Sub(r.Since) > time.Duration(c.cfg.GiveUp*float64(expected)) {
				if !p.givenUp {
					c.learn(now.Sub(r.Since))
				}
				p.givenUp = true
			}
			if p.givenUp {
				giveUp = append(giveUp, r.ID)
			}
			next[r.ID] = p
		case r.Phase == Ready && was && !before.givenUp:
			c.learn(r.Since.Sub(before.since))
		}
	}
	c.pending = next
	slices.Sort(giveUp)
	return giveUp
}

func (c *coldStarts) learn(took time.Duration) {
	c.took = keep(append(c.took, max(0, took.Seconds())), c.cfg.Starts)
}

// expect is what to reckon with. What is configured counts as one start among those seen.
func (c *coldStarts) expect() time.Duration {
	if len(c.took) == 0 {
		return c.cfg.Cold
	}
	all := c.took
	if len(all) < c.cfg.Starts {
		all = append(slices.Clone(all), c.cfg.Cold.Seconds())
	}
	return seconds(quantile(all, c.cfg.Quantile))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
