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
	last           flowcontrol.Attainment
	known          bool
	requests, late float64
}

func (g *gateway) read(r *flowcontrol.Reading, slo flowcontrol.SLO) {
	if slo != g.slo { // counts against the one before show nothing of those to come
		g.slo, g.first.known, g.each.known = slo, false, false
	}
	r = r.Against(slo)
	g.at = r.Sampled
	g.first.read(r.TTFT)
	g.each.read(r.TPOT)
	g.times.read(r.Sampled, r.FirstTokenTimes)
}

func (c *counted) read(a flowcontrol.Attainment) {
	if !(a.Requests >= 0 && a.Late >= 0) { // absent
		return
	}
	if c.known && a.Requests >= c.last.Requests && a.Late >= c.last.Late {
		c.requests += a.Requests - c.last.Requests
		c.late += a.Late - c.last.Late
	}
	c.last, c.known = a, true
}
