package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// underWay is the lines that a runner carries, in the order of their starts, with what of their
// prompts is known to be computed. An engine takes lines of one priority in the order they come, so
// a first token tells of all prompts before it, and so does an answer: where not all lines are
// streamed, the rest can still be followed.
type underWay struct {
	lines      []lineUnderWay
	prefilling int // prompt tokens of those not known to be computed
	streamed   int
	recalled   int // asked to end, and not yet back

	// tokens that a line would have brought that decoded all the time; only grows
	clock    int64
	ticked   time.Time // when that was last heard of
	decoding []decoding
}

// decoding is how many lines of a job have an age that is known. All of them get one token in each
// iteration.
type decoding struct {
	job   *job
	lines int64
}

type lineUnderWay struct {
	number      uint64 // of its Start
	job         *job
	chunk, slot int32
	prompt      int32
	streamed    bool
	computed    bool // the prompt is
	recalled    bool
	decoding    bool  // and its age is counted
	orphan      bool  // its runner has left meanwhile
	since       int64 // the clock when its age was nothing
}

func (u *underWay) add(s *Start) {
	u.lines = append(u.lines, lineUnderWay{
		number: s.number, job: s.job, chunk: s.line.chunk, slot: s.line.slot, prompt: s.line.prompt,
		streamed: s.Stream,
	})
	u.prefilling += int(s.line.prompt)
	if s.Stream {
		u.streamed++
	}
}

func (u *underWay) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(u.lines, number, func(l lineUnderWay, number uint64) int {
		return cmp.Compare(l.number, number)
	})
}

// answered notes that a line has brought a token: its prompt is computed, and so are those of the
// lines before it.
func (u *underWay) answered(number uint64) {
	i, found := u.find(number)
	if !found {
		return
	}
	for ; i >= 0 && !u.lines[i].computed; i-- {
		u.compute(&u.lines[i])
	}
}

func (u *underWay) compute(l *lineUnderWay) {
	l.computed = true
	u.prefilling -= int(l.prompt)
}

// of is the entry of a job. Runners carry lines of few jobs at a time.
func (u *underWay) of(j *job) *decoding {
	for i := range u.decoding {
		if u.decoding[i].job == j {
			return &u.decoding[i]
		}
	}
	u.decoding = append(u.decoding, decoding{job: j})
	return &u.decoding[len(u.decoding)-1]
}

// tick lets all lines that decode grow as many tokens older as their engine had iterations: as many
// as there were gaps, but, since the gaps of several streams are the same iterations, no more than
// had room in the time since the last report. Lines that began to decode in that time grow from the
// next report on, so that none is ever taken for older than it is.
func (u *underWay) tick(now time.Time, gaps int, took time.Duration) {
	passed := min(now.Sub(u.ticked), max(2*GapsEvery, took/time.Duration(gaps)))
	u.ticked = now
	tokens := int64(gaps)
	if took > passed {
		tokens = int64(portable.Rounded(float64(gaps)*(float64(passed)/float64(took))) + 0.5)
	}
	u.clock += tokens
	for _, d := range u.decoding {
		d.job.ages.tokens += tokens * d.lines
	}
	// Prompts are computed in the order of the lines, so those that have begun to decode are the
	// last of those computed.
	for i := len(u.lines) - 1; i >= 0 && !u.lines[i].decoding && !u.lines[i].orphan; i-- {
		if l := &u.lines[i]; l.computed {
			l.decoding, l.since = true, u.clock
			l.job.ages.lines++
			u.of(l.job).lines++
		}
	}
}

// forget takes back what a line has brought to the ages of its job.
func (u *underWay) forget(l *lineUnderWay) {
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

// disown forgets all ages: the runner has left, and whether its lines still grow nobody sees.
func (u *underWay) disown() {
	for i := range u.lines {
		u.forget(&u.lines[i])
		u.lines[i].orphan = true
	}
}

// remove takes out a line that has ended.
func (u *underWay) remove(number uint64) {
	i, found := u.find(number)
	if !found {
		return
	}
	l := &u.lines[i]
	u.forget(l)
	if !l.computed {
		u.compute(l)
	}
	if l.streamed {
		u.streamed--
	}
	if l.recalled {
		u.recalled--
	}
	u.lines = slices.Delete(u.lines, i, i+1)
}

// recall marks lines, the youngest first, until no more than keep are left, and appends them to
// recalled. What has come least far is lost most cheaply, and gives back the room that its prompt
// would still have taken.
func (u *underWay) recall(runner string, keep int, recalled []Start) []Start {
	for i := len(u.lines) - 1; i >= 0 && len(u.lines)-u.recalled > keep; i-- {
		if l := &u.lines[i]; !l.recalled {
			l.recalled = true
			u.recalled++
			recalled = append(recalled, Start{Key: l.job.key, Chunk: int(l.chunk), Slot: int(
				l.slot), Runner: runner, number: l.number})
		}
	}
	return recalled
}

// room is how many more lines an allowance lets start: none while the prompts of those before wait
// to be computed.
func (u *underWay) room(granted flowcontrol.RunnerAllowance, inFlight int) int {
	if u.prefilling >= granted.Prompt {
		return 0
	}
	return granted.Lines - inFlight
}
