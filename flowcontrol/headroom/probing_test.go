package headroom_test

import (
	"testing"
	"time"
)

// While every request is late as soon as a line runs, hardly any line runs. They come back when
// nothing is late any more.
func TestLinesGoToZeroAndComeBack(t *testing.T) {
	s := newEngine(t, config())
	s.run(5 * time.Minute)
	before := len(s.lines)
	busy := func(d time.Duration, late bool) (share float64) {
		n, ran := 0, 0
		for end := s.now.Add(d); s.now.Before(end); n++ {
			was := s.late
			s.step()
			if len(s.lines) > 0 {
				ran++
				if late {
					s.late.Late += s.late.Requests - was.Requests
				}
			}
		}
		return float64(ran) / float64(n)
	}
	busy(time.Hour, true)
	// Some line shows from time to time how the pool is.
	if got := busy(20*time.Minute, true); got > 0.4 || got == 0 {
		t.Errorf("lines run for a share of %.2f of the time in which they make all late, had %d",
			got, before)
	}
	busy(6*time.Hour, false)
	if after := len(s.lines); after < before/2 {
		t.Errorf("%d lines when nothing is late any more, were %d", after, before)
	}
}
