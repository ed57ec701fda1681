package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Lines are answered before the first metrics of a runner, between those of others, and in every
// bucket. None of them is taken for a user's answer, and none is taken from those of users.
func TestAnswersOfLinesAreNoUsers(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b")
	now := noon
	type counts struct{ short, long float64 }
	engines := make([]counts, len(runners))
	answered := func(i, lines, tokens int) {
		for range lines {
			c.Observe(now, &flowcontrol.Answered{
				Load: flowcontrol.Load{Runner: c.roster.Members[i].ID}, PromptTokens: 100,
				OutputTokens: tokens})
		}
		if tokens <= 5 {
			engines[i].short += float64(lines)
		} else {
			engines[i].long += float64(lines)
		}
	}
	read := func(i int) {
		now = now.Add(time.Second)
		m := flowcontrol.NoReading(flowcontrol.Metrics, now)
		m.Running, m.Waiting = 0, 0
		n := engines[i]
		m.AnswerLengths = []flowcontrol.Bucket{{Upper: 5, Count: n.short},
			{Upper: 1000, Count: n.short + n.long}}
		c.Observe(now, &flowcontrol.Read{Runner: c.roster.Members[i].ID, Reading: &m})
	}
	answered(0, 30, 2)
	answered(1, 30, 2)
	read(0)
	answered(0, 20, 2)
	answered(1, 20, 2) // before the first metrics of this runner
	read(0)
	read(1)
	for range 5 {
		answered(0, 10, 2)
		answered(1, 10, 2)
		answered(1, 10, 400)
		engines[0].long += 6 // users
		engines[1].short++
		read(0)
		read(1)
	}
	got := c.engineAnswers.interactive()
	if got[0].Count != 5 || got[1].Count != 35 {
		t.Errorf("%v short answers of users and %v in all, want 5 and 35", got[0].Count,
			got[1].Count)
	}
}
