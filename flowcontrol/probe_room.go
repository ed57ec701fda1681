package flowcontrol

import (
	"math"
	"time"
)

// someTail is how many tokens a line is taken to produce before enough have ended to tell: those
// that end first are the short ones.
const someTail = 1024

// hold is how many tokens of KV a line holds, on average over those that will run at one time, and
// how much that differs between them. Lines under way hold less than they will, and those that have
// ended were the short ones: while few have, the time that the others have run for counts as well,
// and as if one had ended with someTail.
func (p *probe) hold() (mean, deviation float64) {
	mix := p.lineMix()
	mean, deviation = mix.MeanContext(),
		math.Sqrt(max(0, p.mix.square-float64(p.mix.context*p.mix.context)))
	lines, ages := 0.0, 0.0
	for _, m := range p.Members {
		own := &m.State.own
		lines += float64(own.lines)
		ages += max(0, own.context-float64(float64(own.lines)*mix.Prompt))
	}
	ended := float64(p.mix.answers)
	// the share of the doubt that is left: two generations prove enough
	young := 1 - ended/(2*lines+1)
	if young <= 0 {
		return mean, deviation
	}
	known := p.mix.output
	tail := (float64(ended*known) + ages + someTail) / (ended + 1)
	tail = min(tail, someTail+float64(4*ages/max(lines, 1)))
	// Of answers that end at any time, those under way are as old as the mean answer is long, and
	// differ as much.
	mean += float64(young * max(0, mix.Prompt+tail-mean))
	deviation += float64(young * max(0, tail-deviation))
	return mean, deviation
}

// fitting is how many lines fit into so many tokens of KV, at the age that they will have: n·mean +
// sigmas·√n·deviation of them.
func (p *probe) fitting(tokens float64) float64 {
	mean, deviation := p.hold()
	if !(tokens > 0) {
		return 0
	}
	half := float64(p.cfg.Reserve.Tail*deviation) / (2 * mean)
	root := math.Sqrt(float64(half*half)+tokens/mean) - half
	return float64(root * root)
}

// crowd is what becomes of a runner's lines when its KV cache holds more than it should: no more
// start, and where the engine preempts or soon will, the youngest are recalled, who have the least
// to lose. An engine that preempts loses more.
type crowd struct {
	keep   int
	recall bool
	until  time.Time
}

// crowded takes note of metrics: used is the share of a cache of so many tokens, preempted whether
// anyone lost its place.
func (r *probed) crowded(now time.Time, used, capacity float64, preempted bool, p *probe) {
	limit := p.cfg.Reserve.KV
	if r.own.lines == 0 || !(used > limit) && !preempted {
		if now.After(r.crowd.until) {
			r.crowd = crowd{}
		}
		r.crowd.recall = false
		return
	}
	c := crowd{keep: r.own.lines, until: now.Add(p.cfg.Brake.Hold)}
	mine := r.own.context
	if (preempted || used > (1+limit)/2) && mine > float64(p.cfg.Brake.Ours*capacity) {
		each := max(mine/float64(r.own.lines), 1)
		over := max(float64((used-limit)*capacity), each)
		c.recall = p.wasted < float64(p.cfg.Brake.Waste*p.answered)
		c.keep = max(0, r.own.lines-int(math.Ceil(over/each)))
	}
	r.crowd = c
}
