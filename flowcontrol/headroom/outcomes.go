package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// outcomes follows how interactive requests fared.
type outcomes struct {
	ttft, tpot lateness
	at         time.Time // Sampled of the last reading
	// lateFirst is when many first tokens were late for the last time.
	lateFirst time.Time
}

const (
	// innocentShare is the share of a pool below which batch lines are not blamed for late
	// requests, over blameWindow: requests that are answered have felt the load for that long.
	innocentShare = 0.05
	blameWindow   = 30 * time.Second
	// lateSign is the share of late first tokens that is a sign for the brake.
	lateSign = 0.05
)

// newer reports whether a reading is newer than the last one, and notes its time.
func (o *outcomes) newer(g *flowcontrol.Reading) bool {
	if !g.Sampled.After(o.at) {
		return false
	}
	o.at = g.Sampled
	return true
}

// skip leaves a reading's requests out of account.
func (o *outcomes) skip(g *flowcontrol.Reading) {
	o.ttft.since(g.TTFT)
	o.tpot.since(g.TPOT)
}

// sign notes whether many first tokens were late.
func (o *outcomes) sign(now time.Time, requests, late float64) {
	if late > max(lateSign*requests, 1) {
		o.lateFirst = now
	}
}
