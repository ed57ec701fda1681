package simulator

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// class is interactive traffic with one SLO, and how its requests fared. Its memory does not grow
// with the number of requests.
type class struct {
	name       string
	slo        scenario.SLO
	flow       scenario.Flow
	through    flowStats
	minutes    []minute
	ttft, tpot sketch

	// Prompt tokens of finished requests, and those of them that prefix caches had.
	prompts, cached int64

	missedTTFT, missedTPOT, rejected, lost, undecided, retries, gaveUp int
}

// minute counts the requests that arrived in one minute after the first edge.
type minute struct{ judged, attained int }

func (c *class) firstToken(req *request, ttft time.Duration) (held bool) {
	c.ttft.add(ttft)
	if held = ttft <= c.slo.FirstToken(req.input); !held {
		c.missedTTFT++
	}
	return held
}

func (c *class) outputTokens(tpot time.Duration) (held bool) {
	c.tpot.add(tpot)
	if held = tpot <= c.slo.TPOT; !held {
		c.missedTPOT++
	}
	return held
}

// merge adds the counts of another class.
func (c *class) merge(o *class) {
	c.ttft.merge(&o.ttft)
	c.tpot.merge(&o.tpot)
	c.prompts += o.prompts
	c.cached += o.cached
	c.missedTTFT += o.missedTTFT
	c.missedTPOT += o.missedTPOT
	c.rejected += o.rejected
	c.lost += o.lost
	c.undecided += o.undecided
	c.retries += o.retries
	c.gaveUp += o.gaveUp
	for i, m := range o.minutes {
		c.minutes[i].judged += m.judged
		c.minutes[i].attained += m.attained
	}
}

func (c *class) report() Interactive {
	r := Interactive{
		MissedTTFT: c.missedTTFT, MissedTPOT: c.missedTPOT, Refused: c.rejected, Lost: c.lost,
		Undecided: c.undecided, Retries: c.retries, GaveUp: c.gaveUp,
		TTFT: c.ttft.quantiles(), TPOT: c.tpot.quantiles(),
	}
	if c.prompts > 0 {
		r.PrefixHitRate = float64(c.cached) / float64(c.prompts)
	}
	attained := 0
	for _, m := range c.minutes {
		r.Requests += m.judged
		attained += m.attained
	}
	r.Attainment = share(attained, r.Requests)
	r.Worst5Minutes, r.Worst5MinutesAt = c.worst()
	return r
}

// worst returns the lowest attainment of the arrivals of five consecutive minutes, and when they
// begin.
func (c *class) worst() (attainment, at float64) {
	const span = 5
	attainment = math.Inf(1)
	for i := range max(1, len(c.minutes)-span+1) {
		var sum minute
		for _, m := range c.minutes[i:min(i+span, len(c.minutes))] {
			sum.judged += m.judged
			sum.attained += m.attained
		}
		if s := share(sum.attained, sum.judged); s < attainment {
			attainment, at = s, (scenario.Edge + time.Duration(i)*time.Minute).Seconds()
		}
	}
	return attainment, at
}

// share returns 1 if whole is 0: no request missed anything.
func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}
