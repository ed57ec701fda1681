package plan

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// admitted is the youngest line that an engine is known to have admitted, by its metrics.
type admitted struct {
	number uint64    // of its Start
	at     time.Time // or before
}

const (
	// arrivalTime is how long a line may take to be counted by its engine: the network, and the
	// text of its prompt made tokens.
	arrivalTime = 100 * time.Millisecond
	// plausiblePrefill is the rate in tokens per second at which an engine computes at least the
	// prompt that is next, and plausibleIteration the time of an iteration. Large models on few
	// GPUs are the slowest.
	plausiblePrefill   = 4000
	plausibleIteration = 100 * time.Millisecond
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

// settle marks the prompts that must be computed by now, and returns the youngest such line; nil:
// there is no new one. An engine works on the prompt that it has admitted last, so the prompts of
// all lines before are computed by the end of an iteration, and that one after the time that its
// tokens take. Streams are more exact: where lines bring tokens one by one, no prompt from the
// first streamed line without a token on is taken for computed.
func (u *inFlightLines) settle(now time.Time) (youngest *inFlightLine) {
	i, found := u.find(u.admitted.number)
	if !found || now.Before(u.settlesAt()) {
		i--
	}
	for k := range u.lines[:i+1] {
		l := &u.lines[k]
		if l.computed {
			continue
		}
		if l.streamed && u.streams && l.counts() {
			break
		}
		u.compute(now, l)
		youngest = l
	}
	return youngest
}

// settlesAt returns when the prompt of the youngest admitted line must be computed. Zero: it has
// ended or is known to be computed.
func (u *inFlightLines) settlesAt() time.Time {
	i, found := u.find(u.admitted.number)
	if !found || u.lines[i].computed {
		return time.Time{}
	}
	return u.admitted.at.Add(plausibleIteration +
		time.Duration(u.lines[i].uncached)*(time.Second/plausiblePrefill))
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
	u.ticked, u.tickedByMetrics = from.Add(seconds(portable.Rounded(tokens*gap))), true
	u.advance(int64(tokens))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
