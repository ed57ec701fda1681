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
