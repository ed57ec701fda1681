package headroom

import (
	"time"
)

// targetShare is the share that batch work may use of what is left between the time of iterations
// without it and the TPOT objective.
//
// It consists of two levels: one for iterations that prompts of batch lines lengthen, which stop at
// once when interactive prompts come, and a lower one for iterations that only decoding lines
// lengthen, which cannot be shortened at once. The value lies between them, by the part that
// prompts have in the cost of the batch work, so that a job of another kind starts with what is
// known of its kind.
type targetShare struct {
	prefill, decode level
	part            spread // of the cost of batch work, that prompts have
}

// kindWindow is the time over which the part of prompts is averaged: that which a report or two
// need to show it.
const kindWindow = 5 * time.Second

func newTargetShare(cfg Tuning, late float64) targetShare {
	decode := cfg.TargetShare
	decode.Start = min(max(cfg.DecodeShareStart, decode.Min), decode.Max)
	return targetShare{prefill: newLevel(cfg.TargetShare, late), decode: newLevel(decode, late)}
}

// seePart records the share of prompts in the cost of the batch work.
func (t *targetShare) seePart(now time.Time, part float64) { t.part.add(now, kindWindow, part) }

// interpolate interpolates between two values by the share of prompts in the cost.
func (t *targetShare) interpolate(decode, prefill float64) float64 {
	return decode + t.part.mean*(prefill-decode)
}

// value returns the target share.
func (t *targetShare) value() float64 { return t.interpolate(t.decode.value, t.prefill.value) }

// update moves both levels by requests that were answered and those of them that were late. Each
// level counts by the square of its part: a level with a small part is hardly tested, and a long
// time of prompts would let that of decoding lines rise without proof.
func (t *targetShare) update(now time.Time, requests, late float64) {
	prefill, decode := t.part.mean, 1-t.part.mean
	t.prefill.update(now, requests, late, prefill*prefill)
	t.decode.update(now, requests, late, decode*decode)
}

// fix sets both levels, which then stay constant.
func (t *targetShare) fix(value float64) {
	t.prefill.fix(value)
	t.decode.fix(value)
}

// fixed reports whether the levels stay constant.
func (t *targetShare) fixed() bool { return t.prefill.fixed }
