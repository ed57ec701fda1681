package plan

import (
	"math"
)

// cachedShare estimates which share of a line's prompt the prefix cache of a runner holds, from the
// job's recent answers. A runner has computed nothing of a job before it has computed one of its
// prompts, so its cache is known to be warm only then.
type cachedShare struct {
	answers      int
	mean, square float64            // of the shares, and of their squares
	warm         map[*runner]uint32 // the life of each runner that has computed a prompt
}

const (
	// cachedAnswers is the number of answers that make an estimate.
	cachedAnswers = 8
	// cachedMemory is the number of answers over which the mean is taken. It is small, because a
	// cache that loses the prefix shows it only in the next answers.
	cachedMemory = 50
)

// add counts an answer.
func (c *cachedShare) add(prompt, cached int) {
	if prompt <= 0 {
		return
	}
	share := min(1, max(0, float64(cached)/float64(prompt)))
	if c.answers < cachedMemory {
		c.answers++
	}
	c.mean += (share - c.mean) / float64(c.answers)
	c.square += (share*share - c.square) / float64(c.answers)
}

// computedOn records that a runner has computed a prompt of the job.
func (c *cachedShare) computedOn(r *runner) {
	if c.warm == nil {
		c.warm = map[*runner]uint32{}
	}
	c.warm[r] = r.life
}

// of returns the number of tokens of a prompt that are probably cached on a runner. It is the mean
// share less the deviation of the answers. A prompt that is computed in full although it was
// expected in the cache delays interactive requests, and the opposite error only delays a start.
func (c *cachedShare) of(prompt int, r *runner) int {
	if c.answers < cachedAnswers || c.mean == 0 {
		return 0
	}
	if life, warm := c.warm[r]; !warm || life != r.life {
		return 0
	}
	deviation := math.Sqrt(max(0, c.square-c.mean*c.mean))
	return int(float64(prompt) * max(0, c.mean-deviation))
}
