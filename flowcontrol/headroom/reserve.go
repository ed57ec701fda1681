package headroom

import (
	"github.com/tidefill/tidefill/costmodel"
)

const (
	// maxOverflow is the most for overflow, however few first tokens were late.
	maxOverflow = 0.3
	// maxEnding is the most for ending, as some lines run much longer than the mean.
	maxEnding = 0.99
	// burst is the part of a runner's sequences and KV cache that is kept for interactive requests
	// in a pool of which nothing is known.
	burst = 0.3
	// halfKnown is the time after which half of that part is still kept, in minutes.
	halfKnown = 15
)

// overflow returns which share of interactive requests may want more of a runner than is kept for
// them.
func (c *Controller) overflow() float64 {
	return min(2*c.slo.Late/c.firstForecast.error(), maxOverflow)
}

// ending returns which share of the lines end while an interactive request may wait for what they
// hold. Nothing has to be kept free beside those.
func (c *Controller) ending(mix costmodel.Mix) float64 {
	life := max(mix.Output, 1)*c.targetTime() + c.promptCost()
	return min(slotPatience*milliseconds(c.firstObjective())/life, maxEnding)
}

// keptFree returns the part of a runner that lines of a mix must leave free. present is what
// interactive requests hold, and wanted what they may want. Lines that end leave it to them.
func (c *Controller) keptFree(present, wanted float64, mix costmodel.Mix) float64 {
	return present + (1-c.ending(mix))*max(0, wanted-present)
}

// unknown returns the part of the pool's bursts that is not known, from 1 down to 0. Bursts that
// come every few minutes are known sooner than rare ones.
func (c *Controller) unknown() float64 {
	if !c.shared {
		return 0
	}
	return halfKnown / (halfKnown + c.ticked.Sub(c.began).Minutes())
}
