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
