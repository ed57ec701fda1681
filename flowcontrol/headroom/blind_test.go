package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A runner that shows nothing but short answers gets more lines while those take no longer, and
// fewer once they queue.
func TestShortAnswersSetTheLines(t *testing.T) {
	for _, test := range []struct {
		name        string
		atOnce      int // answers that the runner computes at once
		least, most float64
	}{{"with room", 1000, 50, 512}, {"that queues", 8, 4, 24}} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := newPool(t, nil, "r")
			now, lines := noon.Add(time.Minute), 0
			for range 20_000 {
				for g := c.Allowance(now).Runners[0]; lines < g.Lines; lines++ {
					c.Observe(now, flowcontrol.Observation{Kind: flowcontrol.Started, Runner: "r",
						InFlight: lines + 1, PromptTokens: 9})
				}
				took := 200 * time.Millisecond * time.Duration(max(lines, test.atOnce)) /
					time.Duration(test.atOnce)
				now = now.Add(took / time.Duration(max(lines, 1)))
				lines--
				c.Observe(now, flowcontrol.Observation{Kind: flowcontrol.Answered, Runner: "r",
					InFlight: lines, Latency: took, PromptTokens: 9, OutputTokens: 5})
			}
			if c.lines < test.least || c.lines > test.most {
				t.Errorf("%v lines, want %v to %v", c.lines, test.least, test.most)
			}
		})
	}
}

// An answer shows what its prompt costs at most, however high the guess is.
func TestAnswersBoundTheCostOfPrompts(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	guess := c.promptTime()
	answer := func(latency time.Duration, prompt int) {
		c.Observe(noon, flowcontrol.Observation{Kind: flowcontrol.Answered, Runner: "r",
			Latency: latency, PromptTokens: prompt, OutputTokens: 5})
	}
	answer(time.Millisecond, 5) // mostly the network
	if got := c.promptTime(); got != guess {
		t.Errorf("a token takes %v ms by a prompt of 5, want %v", got, guess)
	}
	answer(30*time.Millisecond, 3000)
	answer(20*time.Second, 3000) // a long answer shows nothing
	if got := c.promptTime(); got != 0.01 {
		t.Errorf("a token takes %v ms, want 0.01 at most", got)
	}
	if runners[0].iterations.seenAt = noon; c.promptTime() != guess {
		t.Errorf("a token takes %v ms although iterations show its cost", c.promptTime())
	}
}

// A line whose prompt was guessed to cost minutes keeps no other waiting once it is answered.
func TestAnsweredPromptsOweNoMoreThanTheyTook(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	for _, o := range []flowcontrol.Observation{
		{Kind: flowcontrol.Started, InFlight: 1, PromptTokens: 750_000},
		{Kind: flowcontrol.Answered, Latency: 10 * time.Millisecond, PromptTokens: 3},
	} {
		o.Runner = "r"
		c.Observe(noon, o)
	}
	if got := runners[0].budget; got < -10 {
		t.Errorf("%v ms are left for prompts after an answer of 10 ms", got)
	}
}
