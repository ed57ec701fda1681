package random

import (
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// Metrics is how metrics are read in every pool of a source, instead of as drawn. The zero value
// leaves them as drawn.
type Metrics struct {
	// Period is the time between two readings of each engine, and of the gateway where one was
	// drawn, which does not count batch lines then. 0: as drawn.
	Period time.Duration
	// Off leaves out both.
	Off bool
}

// String returns the value of the flag --metrics; empty: as drawn.
func (m Metrics) String() string {
	switch {
	case m.Off:
		return "off"
	case m.Period > 0:
		return m.Period.String()
	}
	return ""
}

// period returns the time between two readings in seconds.
func (m Metrics) period(drawn float64) float64 {
	if m.Period > 0 {
		return m.Period.Seconds()
	}
	return drawn
}

// replace changes which metrics there are.
func (m Metrics) replace(drawn *scenario.Metrics) {
	switch {
	case m.Off:
		drawn.Engine, drawn.Gateway = false, scenario.GatewayOff
	case m.Period > 0:
		drawn.Engine = true
		if drawn.Gateway == scenario.GatewayContaminated {
			drawn.Gateway = scenario.GatewayHistogram
		}
	}
}
