package telemetry

import "time"

// pace sets the interval at which a source is read by the time of its reads: they cost the engine's
// server about as much. A busy server takes longer and is read less often.
type pace struct {
	source source
	cost   time.Duration // of the longest of the last reads
}

const (
	// costShare is the part of the time that reads may take where they come more often than every.
	costShare = 0.02
	// costKept is the share of the cost of a long read that counts after the next one.
	costKept = 0.8
)

// took records the time of a read.
func (p *pace) took(d time.Duration) { p.cost = max(d, time.Duration(costKept*float64(p.cost))) }

// pause returns the time until the next read.
func (p *pace) pause() time.Duration {
	if p.source.fastest <= 0 || p.source.fastest >= p.source.every {
		return p.source.every
	}
	cheap := time.Duration(float64(p.cost) / costShare)
	return min(max(cheap, p.source.fastest), p.source.every)
}
