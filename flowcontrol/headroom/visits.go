package headroom

import (
	"github.com/tidefill/tidefill/flowcontrol"
)

// visits counts the interactive requests that a runner has answered: the answers that its metrics
// count, less those of batch lines. A gauge of running requests misses short ones between two
// readings.
type visits struct {
	shown bool    // metrics count answers
	count float64 // may be off by a few, since lines are known to be answered a moment later
}

// read takes over the histograms of answers of two readings in a row. ours is the number of batch
// lines that were answered between them. It returns the growth of the count.
func (v *visits) read(before, now []flowcontrol.Bucket, ours float64) (more float64) {
	last := len(now) - 1
	v.shown = last >= 0
	if !v.shown || len(before) != len(now) || now[last].Count < before[last].Count {
		return 0
	}
	more = now[last].Count - before[last].Count - ours
	v.count += more
	return more
}

// stay holds the number of interactive requests that came to a packed runner since it is packed.
// even is the number that would have come if the router had spread all of them evenly.
type stay struct {
	known         bool
	came, even    float64
	most          float64 // the number that may come if all that do are late
	own, everyone float64 // counts at the start
}

const (
	// fewExpected is the number of requests that must have been expected for those that came to
	// prove that a runner is avoided.
	fewExpected = 4
	// doubtful is the number of requests that may have come by mistake of our count, or before the
	// runner was full.
	doubtful = 3
	// maxVisits bounds the share of all requests that come to packed runners, as a multiple of
	// slo.late. Those that come while a runner is nearly empty are in time.
	maxVisits = 4
)

// stay returns what came to a packed runner since then.
func (c *Controller) stay(r *runner) stay {
	s, all := r.stay, c.usersAnswered-r.stay.everyone
	s.known = true
	for _, m := range c.roster.Members {
		s.known = s.known && m.State.answered.shown
	}
	s.came = r.answered.count - s.own
	s.most = maxVisits * (c.slo.Late * all)
	s.even = all / float64(len(c.roster.Members))
	return s
}

// beginStay starts to count what comes to a runner that is packed now.
func (c *Controller) beginStay(r *runner) {
	r.stay = stay{own: r.answered.count, everyone: c.usersAnswered}
}

// avoided reports whether requests have shown that the router avoids the runner.
func (s stay) avoided() bool {
	return s.even >= fewExpected && s.came <= avoided*s.even
}

// visited reports whether they have shown that it does not.
func (s stay) visited() bool { return s.came >= doubtful+min(s.even/2, s.most) }
