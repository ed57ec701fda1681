package headroom

import "github.com/tidefill/tidefill/flowcontrol"

// lateness turns the counters of a source into the requests since the last reading.
type lateness struct {
	last  flowcontrol.Attainment
	known bool
}

// since returns what was counted since the last call; ok is false if a counter is absent or has
// started again.
func (l *lateness) since(a flowcontrol.Attainment) (requests, late float64, ok bool) {
	if !(a.Requests >= 0) || !(a.Late >= 0) {
		return 0, 0, false
	}
	before := l.last
	grown := l.known && a.Requests >= before.Requests && a.Late >= before.Late
	l.last, l.known = a, true
	if !grown {
		return 0, 0, false
	}
	return a.Requests - before.Requests, a.Late - before.Late, true
}

// excess is the number of late requests beyond those that are late without batch work. What was
// expected and did not happen is a credit, so that single late requests are not charged only
// because they come one by one.
type excess float64

// maxCredit is the greatest credit, in late requests.
const maxCredit = 3

// add returns the number of late requests beyond the usual one.
func (e *excess) add(late, usual float64) float64 {
	*e = max(*e+excess(late-usual), -maxCredit)
	if *e <= 0 {
		return 0
	}
	beyond := float64(*e)
	*e = 0
	return beyond
}
