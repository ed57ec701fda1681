package plan

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// admitted is the youngest line that an engine is known to have admitted, by its metrics.
type admitted struct {
	number uint64    // of its Start
	at     time.Time // or before
}

const (
	// arrivalTime is the longest time until a line is counted by its engine: the network, and the
	// text of its prompt made tokens.
	arrivalTime = 100 * time.Millisecond
	// calmFor is the time after a sample without waiting requests for which lines are expected not
	// to wait.
	calmFor = 2500 * time.Millisecond
	// blindTime is the longest time that lines are expected to wait on an engine that shows
	// nothing. It sets the pace of prompts there, which is safe if it is slow.
	blindTime = 2 * time.Second
	// longestDelay is the age above which a reading is not used. What it shows still holds, but
	// policies would take the news for a sign of life.
	longestDelay = 30 * time.Second
)

// read takes a reading of the engine's metrics. Only lines without streams need it.
func (u *inFlightLines) read(now time.Time, m *flowcontrol.Reading) {
	s := sampleOf(m)
	before, grown := u.sample, s.since(u.sample)
	if grown != still {
		u.sample = s
	}
	if grown == restarted || math.IsNaN(s.waiting) {
		u.sample.waiting = math.NaN() // not calm, and still crowded if it was
		if before.waiting > 0 {
			u.sample.waiting = before.waiting
		}
	}
	if grown != advanced || now.Sub(s.at) > longestDelay {
		return
	}
	if i := u.inside(m); i >= 0 && u.lines[i].number > u.admitted.number {
		u.admitted = admitted{u.lines[i].number, m.Sampled}
	}
	u.tickByMetrics(before, s)
}

// inside returns the youngest line that the engine had admitted when it was sampled; -1: none is
// known. Engines admit requests of the same priority in order, and those of users before or among
// them, so of the lines that had arrived at most the youngest Waiting were not admitted, and no
// more than Running were.
func (u *inFlightLines) inside(m *flowcontrol.Reading) int {
	if !(m.Waiting >= 0) {
		return -1
	}
	arrived := 0
	for i := range u.lines {
		if l := &u.lines[i]; l.counts() && !l.sent.After(m.Sampled.Add(-arrivalTime)) {
			arrived++
		}
	}
	within := float64(arrived) - m.Waiting
	if !math.IsNaN(m.Running) {
		within = min(within, m.Running)
	}
	for i := range u.lines {
		if within < 1 {
			return -1
		}
		if u.lines[i].counts() {
			if within--; within < 1 {
				return i
			}
		}
	}
	return -1
}

// counts reports whether metrics of the engine say something about the line.
func (l *inFlightLine) counts() bool { return !l.detached && !l.evicted }

// settle marks the prompts that must be computed by now, and returns the youngest of these lines
// for which metrics show it; nil: there is none. Streams are more exact: where lines bring tokens
// one by one, no prompt from the first streamed line without a token on is taken for computed.
func (u *inFlightLines) settle(now time.Time) (youngest *inFlightLine) {
	u.next = time.Time{}
	k := len(u.lines) // of the first line that is not certain
	for k > 0 && !u.lines[k-1].certain() {
		k--
	}
	var before time.Time
	if k > 0 {
		before = u.lines[k-1].computedAt
	}
	for ; k < len(u.lines); k++ {
		l := &u.lines[k]
		if l.streamed && u.streams && l.counts() {
			break
		}
		at, how := u.readyAt(l, before)
		if !l.computed && (how == unknown || at.After(now)) {
			u.next = at
			break
		}
		if !l.computed {
			u.compute(now, l)
			if l.presumed = true; how != assumed {
				youngest = l
			}
		}
		if l.number <= u.admitted.number && !at.After(now) {
			l.presumed, l.computedAt = false, now
		}
		before = l.computedAt
	}
	return youngest
}

// evidence says how it is known that a prompt is computed.
type evidence uint8

const (
	unknown evidence = iota
	shown            // by metrics
	assumed          // because engines do not take longer
)

// readyAt returns when the prompt of a line must be computed. before is when that of the line
// before it was.
//
// An engine works on the prompt that it has admitted last, so the prompts of all lines before are
// computed by the end of an iteration, and that one after the time that its tokens take. A line
// that was sent shortly after a sample without waiting requests is admitted when it arrives.
// Without such a sample, lines may wait for some time; if requests waited, for any time.
func (u *inFlightLines) readyAt(l *inFlightLine, before time.Time) (time.Time, evidence) {
	took := u.prefill.took(l.prompt, l.uncached)
	switch {
	case l.number < u.admitted.number:
		return u.admitted.at, shown
	case l.number == u.admitted.number:
		return u.admitted.at.Add(u.iteration() + took), shown
	case u.sample.waiting > 0 && l.sent.Sub(u.sample.at) < longestDelay:
		return time.Time{}, unknown
	}
	after := func(wait time.Duration) time.Time {
		at := l.sent.Add(wait)
		if at.Before(before) {
			at = before
		}
		return at.Add(took)
	}
	at := after(arrivalTime + u.iteration())
	if u.sample.waiting == 0 && at.Sub(u.sample.at) <= calmFor {
		return at, shown
	}
	return after(blindTime), assumed
}

// tickByMetrics adds the iterations between two samples to the ages of lines, if no stream has
// reported them. The mean gap is over requests, so it is rather too long where iterations with many
// requests are long ones, and ages too low. Each line that decodes has a gap in each iteration,
// which limits their number.
func (u *inFlightLines) tickByMetrics(before, s sample) {
	gaps, took := s.gaps-before.gaps, s.gapTime-before.gapTime
	if !(gaps >= 1 && took > 0) {
		return
	}
	u.gap = seconds(took / gaps)
	if u.streamed > 0 && !u.tickedByMetrics && s.at.Sub(u.ticked) < 2*GapsInterval {
		return
	}
	gap := took / gaps
	from := u.ticked
	if earliest := before.at.Add(-seconds(gap)); from.Before(earliest) {
		from = earliest
	}
	tokens := math.Floor(s.at.Sub(from).Seconds() / gap)
	decoding := int64(0)
	for _, d := range u.decoding {
		decoding += d.lines
	}
	tokens = max(0, min(tokens, math.Floor(gaps/float64(max(1, decoding)))))
	u.ticked, u.tickedByMetrics = from.Add(seconds(tokens*gap)), true
	u.advance(int64(tokens))
}

// iteration returns the time of an iteration, by the last gaps between tokens.
func (u *inFlightLines) iteration() time.Duration {
	if u.gap > 0 {
		return u.gap
	}
	return plausibleIteration
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
