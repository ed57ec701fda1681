package decision

import "time"

// window holds the samples of a span of time, oldest first, within a number of bytes.
type window struct {
	span    time.Duration
	limit   int // bytes
	samples []*sample
	bytes   int
}

// add adds a sample and drops those that are too old or too many.
func (w *window) add(s *sample) {
	w.samples = append(w.samples, s)
	w.bytes += s.bytes()
	for len(w.samples) > 1 {
		oldest := w.samples[0]
		if s.at.Sub(oldest.at) <= w.span && w.bytes <= w.limit {
			return
		}
		w.bytes -= oldest.bytes()
		w.samples[0] = nil // for the collector
		w.samples = w.samples[1:]
	}
}

// The windows of a pool.
const (
	recentSpan, recentBytes = 10 * time.Minute, 640 << 10
	hourSpan, hourBytes     = time.Hour, 384 << 10
	hourStep                = 10 * time.Second
)

// timeline holds the samples of a pool.
type timeline struct {
	recent, hour window
	gone         bool // the pool does not exist any more
}

func newTimeline() *timeline {
	return &timeline{recent: window{span: recentSpan, limit: recentBytes},
		hour: window{span: hourSpan, limit: hourBytes}}
}

func (t *timeline) add(s *sample) {
	t.recent.add(s)
	t.gone = false
	// Samples that are so large that those of an hour do not fit are taken less often.
	step := max(hourStep, hourSpan*time.Duration(s.bytes())/hourBytes)
	if n := len(t.hour.samples); n == 0 || s.at.Sub(t.hour.samples[n-1].at) >= step {
		t.hour.add(s)
	}
}

// last returns the latest sample. There is one in every timeline.
func (t *timeline) last() *sample { return t.recent.samples[len(t.recent.samples)-1] }

// all returns the samples of both windows, oldest first.
func (t *timeline) all() []*sample {
	from := t.recent.samples[0].at
	all := make([]*sample, 0, len(t.hour.samples)+len(t.recent.samples))
	for _, s := range t.hour.samples {
		if s.at.Before(from) {
			all = append(all, s)
		}
	}
	return append(all, t.recent.samples...)
}
