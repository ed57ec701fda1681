package live

import (
	"fmt"
	"time"
)

// Recovery is what a fault cost, and the time until batch work was back after it.
// simulator/lab/docs/benchmarks.md defines its figures.
type Recovery struct {
	Fault string  `json:"fault"`
	From  float64 `json:"from_s"`
	To    float64 `json:"to_s"`
	// During is while it lasts. After is from its end until lines are back, or for as long as that
	// was awaited.
	During Loss `json:"during"`
	After  Loss `json:"after"`
	// Before is the mean number of lines in flight before the fault, Fewest the lowest number from
	// its begin to the end of After.
	Before float64 `json:"in_flight_before"`
	Fewest float64 `json:"in_flight_fewest"`
	// Seconds is the recovery time. Nil: lines were not back within Awaited, or there were none
	// before.
	Seconds *float64 `json:"recovery_s"`
	Awaited float64  `json:"awaited_s"` // until the next fault or the end; 0: they overlap
}

// HadLines reports whether there was batch work before the fault that could come back.
func (r Recovery) HadLines() bool { return r.Before >= fewLines }

// Loss is what batch work took from the interactive requests that arrived in a period.
type Loss struct {
	Requests int     `json:"requests"`
	Points   float64 `json:"points"` // of attainment, against the run without batch work
}

// Trace is what is kept of a run to judge its faults.
type Trace struct {
	Arrivals []Arrival // in any order
	Levels   []Level   // by time
	End      time.Duration
}

// Arrival is an interactive request.
type Arrival struct {
	At   time.Duration
	Late bool
}

// Level is the number of batch lines in flight at a time.
type Level struct {
	At    time.Duration
	Lines float64
}

// What counts as recovered.
const (
	recoveredShare = 0.8              // of the mean of lines in flight before the fault
	beforeFault    = 2 * time.Minute  // of which that mean is
	recoveredFor   = 10 * time.Second // whose mean reaches it
	fewLines       = 1                // fewer before a fault say nothing of what follows
)

// Recoveries returns what each of the faults cost, which are in the order of their begins, against
// the run without batch work.
func Recoveries(faults []Fault, run, alone Trace) []Recovery {
	var all []Recovery
	for i, f := range faults {
		all = append(all, recovery(faults, i, run, alone, f))
	}
	return all
}

func recovery(faults []Fault, i int, run, alone Trace, f Fault) Recovery {
	until := run.End
	if i+1 < len(faults) {
		until = min(until, max(f.To, faults[i+1].From))
	}
	r := Recovery{Fault: f.Name, From: f.From.Seconds(), To: f.To.Seconds(),
		Awaited: (until - f.To).Seconds(), Before: run.before(faults, i)}
	if r.HadLines() {
		if at, ok := run.reaches(recoveredShare*r.Before, f.To, until); ok {
			seconds := (at - f.To).Seconds()
			r.Seconds, until = &seconds, at
		}
	}
	r.During = lossOf(run, alone, f.From, f.To)
	r.After = lossOf(run, alone, f.To, until)
	r.Fewest = r.Before
	for _, l := range run.Levels {
		if l.At >= f.From && l.At < max(until, f.To+recoveredFor) {
			r.Fewest = min(r.Fewest, l.Lines)
		}
	}
	return r
}

// before returns the mean number of lines in flight before a fault, without the time of other
// faults; 0 if no time is left.
func (t Trace) before(faults []Fault, i int) float64 {
	sum, n := 0.0, 0
	for _, l := range t.Levels {
		if l.At < faults[i].From-beforeFault || l.At >= faults[i].From {
			continue
		}
		calm := true
		for _, f := range faults[:i] {
			calm = calm && (l.At < f.From || l.At >= f.To)
		}
		if calm {
			sum += l.Lines
			n++
		}
	}
	return sum / float64(max(1, n))
}

// reaches returns the begin of the first period of recoveredFor whose mean is at least so many
// lines.
func (t Trace) reaches(lines float64, from, until time.Duration) (time.Duration, bool) {
	for i, first := range t.Levels {
		if first.At < from {
			continue
		}
		if first.At+recoveredFor > until {
			break
		}
		sum, n := 0.0, 0
		for _, l := range t.Levels[i:] {
			if l.At >= first.At+recoveredFor {
				break
			}
			sum += l.Lines
			n++
		}
		if sum/float64(n) >= lines {
			return first.At, true
		}
	}
	return 0, false
}

func lossOf(run, alone Trace, from, to time.Duration) Loss {
	n, with := run.attainment(from, to)
	_, without := alone.attainment(from, to)
	return Loss{Requests: n, Points: 100 * (without - with)}
}

// attainment returns the number of requests that arrived in a period, and the share that was not
// late.
func (t Trace) attainment(from, to time.Duration) (n int, met float64) {
	late := 0
	for _, a := range t.Arrivals {
		if a.At < from || a.At >= to {
			continue
		}
		n++
		if a.Late {
			late++
		}
	}
	return n, share(n-late, n)
}

// Text says when lines were back.
func (r Recovery) Text() string {
	switch {
	case r.Seconds != nil:
		return fmt.Sprintf("%.0f s", *r.Seconds)
	case !r.HadLines():
		return "no lines before"
	case r.Awaited == 0:
		return "overlaps the next"
	}
	return fmt.Sprintf("not within %s",
		(time.Duration(r.Awaited) * time.Second).Round(time.Second))
}
