package plan

import (
	"cmp"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// underWay is the lines that a runner carries, in the order of their starts, with what of their prompts is known to be computed.
// An engine takes lines of one priority in the order they come, so a first token tells of all prompts before it, and so does an
// answer: where not all lines are streamed, the rest can still be followed.
type underWay struct {
	lines      []lineUnderWay
	prefilling int // prompt tokens of those not known to be computed
	streamed   int
	recalled   int // asked to end, and not yet back
}

type lineUnderWay struct {
	number      uint64 // of its Start
	job         *job
	chunk, slot int32
	prompt      int32
	streamed    bool
	computed    bool // the prompt is
	recalled    bool
}

func (u *underWay) add(s *Start) {
	u.lines = append(u.lines, lineUnderWay{
		number: s.number, job: s.job, chunk: s.line.chunk, slot: s.line.slot, prompt: s.line.prompt, streamed: s.Stream,
	})
	u.prefilling += int(s.line.prompt)
	if s.Stream {
		u.streamed++
	}
}

func (u *underWay) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(u.lines, number, func(l lineUnderWay, number uint64) int { return cmp.Compare(l.number, number) })
}

// answered notes that a line has brought a token: its prompt is computed, and so are those of the lines before it.
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

// remove takes out a line that has ended.
func (u *underWay) remove(number uint64) {
	i, found := u.find(number)
	if !found {
		return
	}
	l := &u.lines[i]
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

// recall marks lines, the youngest first, until no more than keep are left, and appends them to recalled. What has come least far is
// lost most cheaply, and gives back the room that its prompt would still have taken.
func (u *underWay) recall(runner string, keep int, recalled []Start) []Start {
	for i := len(u.lines) - 1; i >= 0 && len(u.lines)-u.recalled > keep; i-- {
		if l := &u.lines[i]; !l.recalled {
			l.recalled = true
			u.recalled++
			recalled = append(recalled, Start{Key: l.job.key, Chunk: int(l.chunk), Slot: int(l.slot), Runner: runner, number: l.number})
		}
	}
	return recalled
}

// room is how many more lines an allowance lets start: none while the prompts of those before wait to be computed.
func (u *underWay) room(granted flowcontrol.RunnerAllowance, inFlight int) int {
	if u.prefilling >= granted.Prompt {
		return 0
	}
	return granted.Lines - inFlight
}
