package upstream

import (
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// streamTrust judges whether the gaps between a runner's tokens are those of its engine. A proxy
// that buffers passes them on in bunches, and an engine may send several tokens at once. Then gaps
// show the arrival of events, not the time of iterations, and flow control is better off without
// them.
type streamTrust struct {
	mu       sync.Mutex
	streams  int     // that were judged, as far as that matters
	together float64 // share of events that came with the one before
	perEvent float64 // tokens in an event
	code     string  // of the warning; empty: they are trusted
	// until is when streams are tried again, and pause the time for which they were not trusted
	// last.
	until time.Time
	pause time.Duration
}

// StreamGaps is what one stream has shown.
type StreamGaps struct {
	events   int // that brought tokens
	together int // events that came within togetherWithin of the one before
	took     time.Duration
	First    time.Duration // until the first of them
}

const (
	// togetherWithin limits the time between two events that were sent together.
	togetherWithin = time.Millisecond
	// minGap is the mean gap below which events of iterations may come so close together.
	minGap = 4 * time.Millisecond
	// judgedEvents is the least number of events of a stream that shows anything.
	judgedEvents = 12
	// judgedStreams is the number of streams that must show it. A machine that was busy for a
	// moment delivers late what came in order.
	judgedStreams = 4
	// bunched is the share of events that come together from which on a stream is not trusted, and
	// severalTokens the tokens in an event.
	bunched       = 0.3
	atOnce        = 0.9 // of a stream that was held back until its end
	severalTokens = 1.5
	// firstPause is the time for which streams are not trusted, and twice as long each further
	// time, up to longestPause. A machine that was busy for a while looks the same as a proxy.
	firstPause   = 10 * time.Minute
	longestPause = 12 * time.Hour
)

// Codes of the warnings.
const (
	warnBuffered = "streams_buffered"
	warnInterval = "streams_in_intervals"
)

// Add takes over an event that came so long after the one before.
func (g *StreamGaps) Add(after time.Duration) {
	g.events++
	g.took += after
	if after < togetherWithin {
		g.together++
	}
}

// holds reports whether the streams are trusted.
func (s *streamTrust) holds(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code != "" && !now.Before(s.until) {
		s.code, s.streams, s.together, s.perEvent = "", 0, 0, 0
	}
	return s.code == ""
}

// heldBack reports whether the events came all at once, after a time in which a fast engine would
// have sent them one by one.
func (g *StreamGaps) heldBack() bool {
	return float64(g.together) >= atOnce*float64(g.events) &&
		g.First >= time.Duration(g.events)*minGap
}

// judge takes over a stream of so many tokens that has ended.
func (s *streamTrust) judge(now time.Time, g StreamGaps, tokens int) {
	fast := g.took < time.Duration(g.events)*minGap
	if g.events < judgedEvents || fast && !g.heldBack() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	part := 1 / float64(min(s.streams, 2*judgedStreams))
	s.together += part * (float64(g.together)/float64(g.events) - s.together)
	s.perEvent += part * (float64(tokens)/float64(g.events) - s.perEvent)
	switch {
	case s.code != "" || s.streams < judgedStreams:
		return
	case s.together > bunched:
		s.code = warnBuffered
	case s.perEvent >= severalTokens:
		s.code = warnInterval
	default:
		return
	}
	s.pause = min(max(firstPause, 2*s.pause), longestPause)
	s.until = now.Add(s.pause)
}

// warning returns what is wrong with the streams of a runner; false: nothing.
func (s *streamTrust) warning(runner string) (flowcontrol.Warning, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	instead := fmt.Sprintf("; its lines are sent without streaming for %v, and flow control goes "+
		"by its metrics or by the times of answers", s.pause)
	switch s.code {
	case warnBuffered:
		return flowcontrol.Warning{Code: warnBuffered, Text: "streams of runner " + runner +
			" arrive in bunches, so a proxy in front of it buffers them" + instead +
			". Have the proxy pass events on at once (nginx: proxy_buffering off)"}, true
	case warnInterval:
		return flowcontrol.Warning{Code: warnInterval, Text: "runner " + runner +
			" sends several tokens in an event, so the time between events is not that of an " +
			"iteration" + instead + ". Set the engine's stream interval to 1"}, true
	}
	return flowcontrol.Warning{}, false
}
