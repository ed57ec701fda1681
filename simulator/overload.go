package simulator

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// overload records where and when replicas could not keep up: an interactive request waited for its
// first token several times as long as its objective. Meanwhile the queue grows for as long as the
// overload lasts, so means over that time depend on the length of the run.
type overload struct{ spans []overloadSpan }

// overloadSpan is a period of overload of one replica.
type overloadSpan struct {
	replica  *replica
	from, to time.Time
}

const (
	// overloadAfter is the wait of a request, as a multiple of its objective, from which its
	// replica is in overload. In a burst that the pool works off, a request may wait twice as long
	// as its objective, but not five times.
	overloadAfter = 5
	// overloadGap is the time without such a request that ends a span.
	overloadGap = time.Minute
)

// waited records that a request was sent to a replica at one time and got its first token, or still
// had none, at another.
func (o *overload) waited(r *replica, sent, until time.Time, slo scenario.SLO) {
	from := sent.Add(overloadAfter * slo.TTFT)
	if r == nil || !until.After(from) {
		return
	}
	// The replica's latest span is near the end: requests begin in order of time.
	for i := len(o.spans) - 1; i >= 0; i-- {
		if s := &o.spans[i]; s.replica == r {
			if from.After(s.to.Add(overloadGap)) {
				break
			}
			if from.Before(s.from) {
				s.from = from
			}
			if until.After(s.to) {
				s.to = until
			}
			return
		}
	}
	o.spans = append(o.spans, overloadSpan{r, from, until})
}

func (o *overload) report() []Overload {
	var all []Overload
	for _, s := range o.spans {
		all = append(all, Overload{Replica: s.replica.name, From: s.from.Sub(epoch).Seconds(),
			To: s.to.Sub(epoch).Seconds()})
	}
	slices.SortFunc(all, func(a, b Overload) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Replica, b.Replica))
	})
	return all
}
