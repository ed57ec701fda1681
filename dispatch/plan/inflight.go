package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// inFlightLines holds the lines in flight on a runner, in the order of their starts, and estimates
// which prompts were computed. An engine takes requests of the same priority in order, so a first
// token or an answer shows that all earlier prompts were computed too, also those of lines that are
// not streamed. Of these, metrics show more; see settle.
type inFlightLines struct {
	lines      []inFlightLine
	prefilling int // tokens of prompts that must be computed and are not known to be
	streamed   int
	evicted    int // cancelled, without Finished yet

	// clock counts the tokens of a line that decodes all the time. It only grows.
	clock    int64
	ticked   time.Time // up to when clock counts
	decoding []decoding

	prefill         prefill
	gap             time.Duration // mean of the last gaps between tokens; 0: unknown
	sample          sample        // the last one of the engine's metrics
	admitted        admitted
	next            time.Time // when the next prompt must be computed; zero: not known
	timer           time.Time // the last one set for it
	tickedByMetrics bool      // the last update of clock was by metrics
	streams         bool      // streamed lines bring tokens before their answers, by the last one
}

// decoding counts the lines of a job whose age is known. All of them get one token per iteration.
type decoding struct {
	job   *job
	lines int64
}

type inFlightLine struct {
	number      uint64 // of its Start
	sent        time.Time
	job         *job
	chunk, slot int32
	prompt      int32
	uncached    int32 // tokens of its prompt to compute
	streamed    bool
	spoke       bool      // its first token was reported
	computed    bool      // its prompt was
	computedAt  time.Time // or shortly before
	presumed    bool      // that it was computed is likely, not certain
	evicted     bool
	decoding    bool  // its age is known
	detached    bool  // its runner was removed meanwhile
	since       int64 // clock at age 0
}

func (u *inFlightLines) add(now time.Time, s *Start) {
	u.lines = append(u.lines, inFlightLine{
		number: s.number, sent: now, job: s.job, chunk: s.line.chunk, slot: s.line.slot,
		prompt: s.line.prompt, uncached: s.line.prompt - s.cached, streamed: s.Stream,
	})
	u.prefilling += int(s.line.prompt - s.cached)
	if s.Stream {
		u.streamed++
	}
}

func (u *inFlightLines) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(u.lines, number, func(l inFlightLine, number uint64) int {
		return cmp.Compare(l.number, number)
	})
}

// answered marks the prompt of a line that got a token as computed, and those of the lines before
// it.
func (u *inFlightLines) answered(now time.Time, number uint64) {
	i, found := u.find(number)
	if !found {
		return
	}
	for ; i >= 0 && !u.lines[i].certain(); i-- {
		if l := &u.lines[i]; l.computed {
			l.presumed, l.computedAt = false, now
		} else {
			u.compute(now, l)
		}
	}
}

// certain reports whether the prompt of a line is known to be computed.
func (l *inFlightLine) certain() bool { return l.computed && !l.presumed }

func (u *inFlightLines) compute(now time.Time, l *inFlightLine) {
	l.computed, l.computedAt = true, now
	u.prefilling -= int(l.uncached)
}

// firstToken records the first token of a streamed line.
func (u *inFlightLines) firstToken(now time.Time, number uint64) {
	if i, found := u.find(number); found {
		u.lines[i].spoke, u.streams = true, true
	}
	u.answered(now, number)
}

// succeeded records the answer of a line. Drivers do not stream every line that they could.
func (u *inFlightLines) succeeded(now time.Time, number uint64) {
	if i, found := u.find(number); found && u.lines[i].streamed && !u.lines[i].spoke {
		u.streams = false
	}
	u.answered(now, number)
}

// of returns the entry of a job. Runners have lines of few jobs at a time.
func (u *inFlightLines) of(j *job) *decoding {
	for i := range u.decoding {
		if u.decoding[i].job == j {
			return &u.decoding[i]
		}
	}
	u.decoding = append(u.decoding, decoding{job: j})
	return &u.decoding[len(u.decoding)-1]
}

// tick adds the iterations that streams have shown to the ages of lines. Their number is that of
// the gaps, limited by the time since the last report, because the gaps of several streams are the
// same iterations.
func (u *inFlightLines) tick(now time.Time, gaps int, took time.Duration) {
	u.gap = took / time.Duration(gaps)
	passed := min(now.Sub(u.ticked), max(2*GapsInterval, took/time.Duration(gaps)))
	u.ticked, u.tickedByMetrics = now, false
	tokens := int64(gaps)
	if took > passed {
		tokens = int64(float64(gaps)*(float64(passed)/float64(took)) + 0.5)
	}
	u.advance(tokens)
}

// advance adds iterations of the engine to the ages of all lines that decode, one token each. Lines
// that have begun to decode meanwhile are counted from the next report on, so that no age is too
// high.
func (u *inFlightLines) advance(tokens int64) {
	u.clock += tokens
	for _, d := range u.decoding {
		d.job.ages.tokens += tokens * d.lines
	}
	// Prompts are computed in the order of the lines, so the lines that have just begun to decode
	// are the last of those computed.
	for i := len(u.lines) - 1; i >= 0 && !u.lines[i].decoding && !u.lines[i].detached; i-- {
		if l := &u.lines[i]; l.certain() && !l.computedAt.After(u.ticked) {
			l.decoding, l.since = true, u.clock
			l.job.ages.lines++
			u.of(l.job).lines++
		}
	}
}

// forget removes the age of a line from those of its job.
func (u *inFlightLines) forget(l *inFlightLine) {
	if !l.decoding {
		return
	}
	l.decoding = false
	l.job.ages.lines--
	l.job.ages.tokens -= u.clock - l.since
	of := u.of(l.job)
	if of.lines--; of.lines == 0 {
		u.decoding = slices.DeleteFunc(u.decoding, func(d decoding) bool { return d.job == l.job })
	}
}

// detach removes all ages, because tokens of a runner that was removed are not reported, and what
// metrics have shown of it.
func (u *inFlightLines) detach() {
	u.sample, u.admitted, u.streams, u.gap = sample{}, admitted{}, false, 0
	for i := range u.lines {
		u.forget(&u.lines[i])
		u.lines[i].detached = true
	}
}

// remove removes a line that has ended.
func (u *inFlightLines) remove(number uint64) {
	i, found := u.find(number)
	if !found {
		return
	}
	l := &u.lines[i]
	u.forget(l)
	if !l.computed {
		u.prefilling -= int(l.uncached)
	}
	if l.streamed {
		u.streamed--
	}
	if l.evicted {
		u.evicted--
	}
	u.lines = slices.Delete(u.lines, i, i+1)
}

// evict appends lines to evict, the youngest first, until no more than keep are left. The youngest
// lose the least work, and may free the time that their prompts would still take.
func (u *inFlightLines) evict(runner string, keep int, evicted []Start) []Start {
	for i := len(u.lines) - 1; i >= 0 && len(u.lines)-u.evicted > keep; i-- {
		if !u.lines[i].evicted {
			evicted = append(evicted, u.evictAt(i, runner))
		}
	}
	return evicted
}

// evictAt marks a line as evicted, and returns it.
func (u *inFlightLines) evictAt(i int, runner string) Start {
	l := &u.lines[i]
	l.evicted = true
	u.evicted++
	return Start{Key: l.job.key, Chunk: int(l.chunk), Slot: int(l.slot), Runner: runner,
		number: l.number}
}

// lastOf returns the youngest line, not evicted yet, of a job that is asked for, whose start has at
// most that number; -1: there is none.
func (u *inFlightLines) lastOf(number uint64, wanted func(*job) bool) int {
	for i := len(u.lines) - 1; i >= 0; i-- {
		if l := &u.lines[i]; l.number <= number && !l.evicted && !l.job.gone && wanted(l.job) {
			return i
		}
	}
	return -1
}

// free returns the number of further lines that an allowance lets start: none while too many prompt
// tokens wait to be computed.
func (u *inFlightLines) free(granted flowcontrol.RunnerAllowance, inFlight int) int {
	if u.prefilling >= granted.Prompt {
		return 0
	}
	return granted.Lines - inFlight
}
