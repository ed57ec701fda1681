package autoscale

import (
	"slices"
	"time"
)

// coldStarts measures the time from the request for a replica until it is ready, for the replicas
// of a pool.
type coldStarts struct {
	cfg     StartConfig
	pending map[string]pendingStart // by replica
	took    []float64               // seconds, of the last starts
}

// newColdStarts returns the measurements of a pool, which may have an expected time of its own.
func newColdStarts(cfg StartConfig, p *PoolState) coldStarts {
	if p.ColdStart > 0 {
		cfg.Cold = p.ColdStart
	}
	return coldStarts{cfg: cfg}
}

type pendingStart struct {
	since   time.Time
	givenUp bool
}

// observe updates the measurements and returns the starts to give up. A start that is given up
// counts with the time that it has taken. One whose replica is gone does not count.
func (c *coldStarts) observe(now time.Time, replicas []Replica) (giveUp []string) {
	expected := c.expected()
	next := map[string]pendingStart{}
	for _, r := range replicas {
		before, pending := c.pending[r.ID]
		switch {
		case r.Phase == Starting:
			p := pendingStart{since: r.Since, givenUp: pending && before.givenUp}
			if now.Sub(r.Since) > time.Duration(c.cfg.GiveUp*float64(expected)) {
				if !p.givenUp {
					c.add(now.Sub(r.Since))
				}
				p.givenUp = true
			}
			if p.givenUp {
				giveUp = append(giveUp, r.ID)
			}
			next[r.ID] = p
		case r.Phase == Ready && pending && !before.givenUp:
			c.add(r.Since.Sub(before.since))
		}
	}
	c.pending = next
	slices.Sort(giveUp)
	return giveUp
}

func (c *coldStarts) add(took time.Duration) {
	c.took = lastOf(append(c.took, max(0, took.Seconds())), c.cfg.Starts)
}

// expected returns the expected time of a start. The configured time counts as one measurement
// until there are Starts of them.
func (c *coldStarts) expected() time.Duration {
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
