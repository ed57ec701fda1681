package work

import "time"

// speed measures durable results per second: over 3 seconds or, if results are rare, over as long
// as it takes to see some.
type speed struct {
	since time.Time
	count int
	last  float64 // of the last window that has ended; 0: none, or nothing came
}

const (
	shortWindow, longWindow = 3 * time.Second, time.Minute
	// enoughResults end a window.
	enoughResults = 10
	// firstWindow is the shortest time after which the first window shows anything.
	firstWindow = 500 * time.Millisecond
)

func (s *speed) add(n int) { s.count += n }

func (s *speed) perSecond(now time.Time) float64 {
	if s.since.IsZero() {
		if s.count > 0 { // the time before the first result says nothing
			s.since, s.count = now, 0
		}
		return 0
	}
	elapsed := now.Sub(s.since)
	switch {
	case elapsed >= shortWindow && (s.count >= enoughResults || elapsed >= longWindow):
		s.last = float64(s.count) / elapsed.Seconds()
		s.since, s.count = now, 0
	case s.last == 0 && elapsed >= firstWindow:
		return float64(s.count) / elapsed.Seconds()
	case elapsed >= shortWindow: // fewer come than before
		return min(s.last, float64(s.count+1)/elapsed.Seconds())
	}
	return s.last
}
