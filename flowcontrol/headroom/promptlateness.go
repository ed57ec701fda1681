package headroom

import "github.com/tidefill/tidefill/internal/portable"

// manyPrompts is the number of prompts from which on single ones make no answer late. Then the mean
// iteration decides, which the target share limits.
const manyPrompts = 30

// surelyFits is the part of what an iteration may take longer that a chunk may use without harm:
// the time of a token is known to some percent only, and lines that decode take some too.
const surelyFits = 0.85

// promptLoad is what a prompt of a batch line does to the iterations of a runner, in milliseconds.
type promptLoad struct {
	cost  float64 // the time that it is computed
	added float64 // to the iterations in which it is computed, all together
	most  float64 // the most that prompts add to an iteration
}

func (c *Controller) promptLoad() promptLoad {
	token := c.fit.perToken()
	long := c.sizes.longPrompts()
	return promptLoad{cost: long * c.promptCost(),
		added: long * c.sizes.compute * token,
		most:  c.chunk() * token}
}

// lateByPrompts returns which share of interactive answers is expected to be late because prompts
// of batch lines lengthen their iterations, if those take a part of each runner's time. alone is
// an iteration without batch work, in milliseconds.
func (a *answerLengths) lateByPrompts(
	part float64, p promptLoad, alone, objective float64,
) float64 {
	spare := max(0, objective-alone) // of each iteration
	if p.cost <= 0 || p.added <= 0 || part <= 0 || p.most <= surelyFits*spare {
		return 0
	}
	late := 0.0
	for _, n := range a.fine {
		// An answer meets those that come while it decodes, and one at its start.
		met := part / p.cost * (n*alone + p.cost)
		late += atLeast(1+int(min(n*spare/p.added, manyPrompts)), met)
	}
	return late / fineLengths
}

// atLeast returns the probability of k or more events, of which mean come on average.
func atLeast(k int, mean float64) float64 {
	if k > manyPrompts {
		return 0
	}
	p, fewer := portable.Exp(-mean), 0.0
	for i := range k {
		fewer += p
		p = p * mean / float64(i+1)
	}
	return max(0, 1-fewer)
}

// partByTokenTimes returns which part of the time prompts may take so that no more than a share of
// answers is late because of them.
func (c *Controller) partByTokenTimes(share float64) float64 {
	alone := c.alone.usual
	if alone <= 0 {
		alone = c.fit.perIteration()
	}
	prompt, objective := c.promptLoad(), c.objectiveTime()
	low, high := 0.0, maxPromptShare
	if c.answers.lateByPrompts(high, prompt, alone, objective) <= share {
		return high
	}
	for range 16 {
		part := (low + high) / 2
		if c.answers.lateByPrompts(part, prompt, alone, objective) <= share {
			low = part
		} else {
			high = part
		}
	}
	return low
}
