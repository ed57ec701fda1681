package decision

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// gateway counts the interactive requests that the gateway in front of a pool has shown.
type gateway struct {
	at          time.Time // of the last reading
	slo         flowcontrol.SLO
	first, each counted
	times       firstTokens
}

// counted sums up the growth of a counter that starts again when its source restarts.
type counted struct {
	growth         flowcontrol.Growth
	requests, late float64
}

func (g *gateway) read(r *flowcontrol.Reading, slo flowcontrol.SLO) {
	if slo != g.slo { // counts against the one before show nothing of those to come
		g.slo, g.first.growth.Known, g.each.growth.Known = slo, false, false
	}
	r = r.Against(slo)
	g.at = r.Sampled
	g.first.read(r.TTFT)
	g.each.read(r.TPOT)
	g.times.read(r.Sampled, r.FirstTokenTimes)
}

func (c *counted) read(a flowcontrol.Attainment) {
	requests, late, _ := c.growth.Since(a)
	c.requests += requests
	c.late += late
}
