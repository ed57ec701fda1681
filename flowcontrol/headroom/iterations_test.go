package headroom

import (
	"testing"
	"time"
)

// Between metrics, prompts start at the pace that the target permits, although none is known to be
// computed. With streams, it is known, so that no more wait than were saved for.
func TestPromptsBetweenMetrics(t *testing.T) {
	const prompt, limit = 200, 10_000
	c, _ := newPool(t, nil, "r")
	cfg := c.tuning.Pace
	// started counts prompts that start in two seconds, none of which is known to be computed.
	started := func(fromMetrics bool) (n int) {
		it := iterations{seenAt: noon, fromMetrics: fromMetrics, every: time.Second}
		own := ownLoad{}
		for at := time.Duration(0); at < 2*time.Second; at += 10 * time.Millisecond {
			tokens, _ := it.prompts(noon.Add(at), limit, 0, 60, 0, &own, &c.fit, cfg)
			if float64(own.prefilling) < tokens {
				own.prefilling += prompt
				n++
			}
		}
		return n
	}
	base := c.fit.perIteration()
	// What is saved in two seconds, over the price of a prompt.
	most := 2000 * (60/base - 1) / (prompt * c.fit.perToken() * 60 / base)
	if got := float64(started(true)); got < 0.8*most || got > most+1 {
		t.Errorf("%v prompts start in the time of %v", got, most)
	}
	saved := milliseconds(cfg.MaxCredit) / (prompt * c.fit.perToken() * 60 / base)
	if got := float64(started(false)); got > saved+1 {
		t.Errorf("%v prompts wait with streams, want %v at most", got, saved+1)
	}
}
