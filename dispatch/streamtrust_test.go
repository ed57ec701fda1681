package dispatch

import (
	"testing"
	"time"
)

// Streams that came in bunches are tried again, less often each time.
func TestStreamsAreTrustedAgain(t *testing.T) {
	var s streamTrust
	now := time.Unix(1_000_000, 0)
	judge := func(together int) {
		for range judgedStreams {
			s.judge(now, streamGaps{events: 20, together: together, took: time.Second}, 20)
		}
	}
	for _, pause := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		judge(15)
		now = now.Add(pause - time.Second)
		if s.holds(now) {
			t.Fatalf("they are trusted again before %v", pause)
		}
		if _, warns := s.warning("r"); !warns {
			t.Fatal("there is no warning")
		}
		now = now.Add(time.Second)
		if !s.holds(now) {
			t.Fatalf("they are not trusted again after %v", pause)
		}
	}
	judge(0)
	if !s.holds(now) {
		t.Error("streams in order are not trusted")
	}
}
