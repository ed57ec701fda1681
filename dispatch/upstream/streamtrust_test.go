package upstream

import (
	"testing"
	"time"
)

func TestStreamsThatAreNotThoseOfTheEngine(t *testing.T) {
	for name, test := range map[string]struct {
		stream StreamGaps
		tokens int
		want   string
	}{
		"one by one": {StreamGaps{events: 50, together: 5, took: 2 * time.Second,
			First: time.Second}, 50, ""},
		"a proxy that passes on eight at a time": {StreamGaps{events: 48, together: 42,
			took: 2 * time.Second, First: time.Second}, 48, warnBuffered},
		"a proxy that holds all back": {StreamGaps{events: 50, together: 50,
			took: time.Millisecond, First: 3 * time.Second}, 50, warnBuffered},
		"a stream interval of 4": {StreamGaps{events: 50, together: 2, took: 8 * time.Second,
			First: time.Second}, 200, warnInterval},
		"a runner that answers at once": {StreamGaps{events: 50, together: 50,
			took: time.Millisecond, First: 2 * time.Millisecond}, 50, ""},
		"a fast engine after a long wait": {StreamGaps{events: 50, took: 100 * time.Millisecond,
			First: 3 * time.Second}, 50, ""},
		"few events": {StreamGaps{events: judgedEvents - 1, together: judgedEvents - 1,
			First: time.Second}, 40, ""},
	} {
		var s streamTrust
		now := time.Unix(1_000_000, 0)
		for range judgedStreams - 1 {
			s.judge(now, test.stream, test.tokens)
		}
		if w, warns := s.warning("r"); warns {
			t.Errorf("%s: warns of %s after %d streams", name, w.Code, judgedStreams-1)
		}
		s.judge(now, test.stream, test.tokens)
		w, _ := s.warning("r")
		if w.Code != test.want || s.holds(now) != (test.want == "") {
			t.Errorf("%s: warns of %q, want %q", name, w.Code, test.want)
		}
	}
}

// Streams that came in bunches are tried again, less often each time.
func TestStreamsAreTrustedAgain(t *testing.T) {
	var s streamTrust
	now := time.Unix(1_000_000, 0)
	judge := func(together int) {
		for range judgedStreams {
			s.judge(now, StreamGaps{events: 20, together: together, took: time.Second}, 20)
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
