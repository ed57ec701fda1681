package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// outcomes counts the interactive requests of the pool and those of them that were late.
type outcomes struct {
	ttft, tpot flowcontrol.Growth
	at         time.Time     // Sampled of the last reading
	every      time.Duration // time between the last two
	recentLate fadingShare   // requests of the last minutes that were late
	overload   overload
}

const (
	// If batch lines are a smaller share of the pool's requests than innocentShare, late requests
	// are not attributed to them. The share is averaged over blameWindow, because requests that are
	// answered now were in the pool for about that time. It is small: one line with a long prompt
	// makes many short answers late.
	innocentShare = 0.005
	blameWindow   = 30 * time.Second
)

// newer reports whether a reading is newer than the last one, and records its time.
func (o *outcomes) newer(g *flowcontrol.Reading) bool {
	if !g.Sampled.After(o.at) {
		return false
	}
	if !o.at.IsZero() {
		o.every = g.Sampled.Sub(o.at)
	}
	o.at = g.Sampled
	return true
}

// countedIn reports whether a reading counts requests that the last one did not.
func (o *outcomes) countedIn(g *flowcontrol.Reading) bool {
	more := func(l flowcontrol.Growth, now flowcontrol.Attainment) bool {
		return l.Known && now.Requests > l.Last.Requests
	}
	return more(o.ttft, g.TTFT) || more(o.tpot, g.TPOT)
}

// harm reports whether clearly more requests were late within the last minutes than without
// batch work.
func (o *outcomes) harm(usual float64) bool {
	return o.recentLate.some >= 4 && o.recentLate.share() > usual+clearHarm
}

const (
	clearHarm    = 0.01
	recentWindow = 2 * time.Minute
)
