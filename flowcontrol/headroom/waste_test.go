package headroom

import "testing"

// What was wasted before must not leave a burst without remedy.
func TestSpentBudgetMayWasteMore(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	r := runners[0]
	r.own.lines, r.own.context = 10, 5000
	c.waste.answered = 1e6
	for _, test := range []struct {
		wasted, late float64
		may          bool
	}{{0, 0, true}, {14_000, 0, true}, {16_000, 0, false}, {16_000, 1000, true},
		{46_000, 1000, false}} {
		c.waste.wasted, c.budget.late, c.budget.requests = test.wasted, test.late, 1000
		if got := c.mayEvict(r); got != test.may {
			t.Errorf("%v of 1e6 tokens wasted, %v requests late: a line may be evicted: %v",
				test.wasted, test.late, got)
		}
	}
}
