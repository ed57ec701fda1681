package gradient

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// slope is a runner's limit and what is known of its latency.
type slope struct {
	limit   float64
	long    longMean
	due     time.Time     // when the current window may end
	sum     time.Duration // latencies within it
	answers int
	carried int // most lines within it
}

// longMean is the plain mean of the first warmUp samples and an exponential mean from then on.
type longMean struct {
	mean float64
	seen int
}

// warmUp is a number of samples.
const warmUp = 10

func (l *longMean) add(x float64, window int) {
	if l.seen < warmUp {
		l.seen++
		l.mean += (x - l.mean) / float64(l.seen)
		return
	}
	l.mean += (x - l.mean) * 2 / float64(window+1)
}

// answered adds an answer to the window and returns the limit, which changes at the end of one.
func (s *slope) answered(now time.Time, o *flowcontrol.Answered, cfg Config) int {
	s.sum += o.Latency
	s.answers++
	s.carried = max(s.carried, o.InFlight+1)
	if now.Before(s.due) || s.answers < cfg.Tuning.Samples {
		return int(s.limit)
	}
	short, carried := s.sum.Seconds()/float64(s.answers), float64(s.carried)
	s.due, s.sum, s.answers, s.carried = now.Add(cfg.Tuning.Window), 0, 0, 0
	if short <= 0 {
		return int(s.limit)
	}
	s.long.add(short, cfg.Tuning.LongWindow)
	// After a long overload, lower the mean faster than the window would.
	if s.long.mean > 2*short {
		s.long.mean *= 0.9
	}
	if carried >= s.limit/2 { // a limit that is not in use proves nothing
		ratio := max(0.5, min(1, cfg.Tolerance*s.long.mean/short))
		next := s.limit*ratio + float64(cfg.Tuning.Queue)
		s.limit += (next - s.limit) * cfg.Tuning.Smoothing
		s.limit = max(float64(cfg.Min), min(s.limit, float64(cfg.Max)))
	}
	return int(s.limit)
}
