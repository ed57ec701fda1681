package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Where a gateway counts users whom no engine shows, lines leave them as many sequences and as much
// KV cache as they need for as long as they stay.
func TestCountedUsersHaveRoom(t *testing.T) {
	lines := func(rate float64, seqs, tokens int) int {
		c, runners := newPool(t, func(c *flowcontrol.Config) {
			c.Engine.MaxSeqs, c.Engine.KVTokens = seqs, tokens
		}, "a", "b")
		for range 100 {
			c.sizes.start(100, 0, 100, 100)
			c.sizes.answer(100, 0, 100)
		}
		c.outcomes.at = noon
		for s := range 60 {
			c.counted.read(noon.Add(time.Duration(s)*time.Second), rate)
		}
		n, _ := c.safeLines(noon, runners[0], c.LineMix())
		return n
	}
	for name, sizes := range map[string][2]int{"sequences": {64, 0}, "KV cache": {0, 40_000}} {
		// A request of a hundred tokens stays for about five seconds.
		none, some, many := lines(0, sizes[0], sizes[1]), lines(12, sizes[0], sizes[1]),
			lines(40, sizes[0], sizes[1])
		if none == 0 || some == 0 || some >= none || many > none/4 {
			t.Errorf("%s: %d lines without users, %d beside some, %d beside many", name, none, some,
				many)
		}
	}
}

func TestUsualTokenTime(t *testing.T) {
	var times tokenTimes
	for i, counts := range [][3]float64{{0, 0, 0}, {60, 100, 100}} {
		times.read(noon.Add(time.Duration(i)*time.Second), []flowcontrol.Bucket{
			{Upper: 0.02, Count: counts[0]}, {Upper: 0.04, Count: counts[1]},
			{Upper: math.Inf(1), Count: counts[2]}}, 0)
	}
	if got := times.usual(); !near(got, 0.6*10+0.4*30) {
		t.Errorf("the mean is %v ms, want 18", got)
	}
	if got := new(tokenTimes).usual(); got != 0 {
		t.Errorf("%v ms of no request", got)
	}
}
