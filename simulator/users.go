package simulator

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// users judge what interactive requests got. A request counts by when it came.
type users struct {
	slo      scenario.SLO
	from, to time.Time // of arrivals that are judged
	minutes  []minute
	ttft     []time.Duration
	tpot     []time.Duration

	missedTTFT, missedTPOT, rejected, losses, undecided int

	window  *window  // of the tape; nil: there is none
	gateway *gateway // nil: nothing measures what they get
}

// minute counts the requests that came in one minute after the first edge.
type minute struct{ judged, attained int }

func newUsers(s scenario.Scenario) *users {
	judged := s.Horizon - 2*scenario.Edge
	return &users{
		slo: s.Interactive.SLO, from: epoch.Add(scenario.Edge), to: epoch.Add(s.Horizon - scenario.Edge),
		minutes: make([]minute, (judged+time.Minute-1)/time.Minute),
	}
}

// minute is that of an arrival, nil if it is not judged.
func (u *users) minute(at time.Time) *minute {
	if at.Before(u.from) || !at.Before(u.to) {
		return nil
	}
	return &u.minutes[at.Sub(u.from)/time.Minute]
}

// begun notes a request's first token.
func (u *users) begun(f *flight) {
	if g := u.gateway; g != nil {
		ttft := f.first.Sub(f.arrived) + engine.ServerDelay(1)
		g.see(f.first.Add(engine.ServerDelay(1)), &g.ttft[f.class], ttft, ttft > u.slo.FirstToken(f.input))
	}
}

func (u *users) finished(f *flight, c engine.Completion) {
	tpot := time.Duration(0) // of a single token there is none
	if c.Output > 1 {
		rest := c.Finished.Sub(c.FirstToken) + engine.ServerDelay(c.Output) - engine.ServerDelay(1)
		tpot = rest / time.Duration(c.Output-1)
		if g := u.gateway; g != nil {
			g.see(c.Finished.Add(engine.ServerDelay(c.Output)), &g.tpot[f.class], tpot, tpot > u.slo.TPOT)
		}
	}
	m := u.minute(f.arrived)
	if m == nil {
		return
	}
	ttft := c.FirstToken.Sub(f.arrived) + engine.ServerDelay(1)
	held := u.firstToken(f, ttft)
	if tpot > 0 {
		held = u.rest(tpot) && held
	}
	u.window.add(ttft, tpot, held)
	m.judged++
	if held {
		m.attained++
	}
}

// refused counts a request that no engine can serve.
func (u *users) refused(f *flight) {
	if m := u.minute(f.arrived); m != nil {
		m.judged++
		u.rejected++
	}
}

// lost counts a request whose replica was lost, or for which there was none.
func (u *users) lost(f *flight) {
	if m := u.minute(f.arrived); m != nil {
		m.judged++
		u.losses++
	}
}

// cutOff judges a request that the end of the run finds inside an engine: it has
// missed if one of its times is over already; what else becomes of it, nobody
// knows.
func (u *users) cutOff(f *flight, end time.Time) {
	m := u.minute(f.arrived)
	if m == nil {
		return
	}
	held, age := true, time.Duration(0)
	if f.first.IsZero() {
		held = u.firstToken(f, end.Sub(f.arrived))
	} else {
		held = u.firstToken(f, f.first.Sub(f.arrived)+engine.ServerDelay(1))
		age = end.Sub(f.first)
	}
	// Its tokens would have to be here by now, all of them.
	if f.output > 1 && age/time.Duration(f.output-1) > u.slo.TPOT {
		u.missedTPOT++
		held = false
	}
	if held {
		u.undecided++
		return
	}
	m.judged++
}

func (u *users) firstToken(f *flight, ttft time.Duration) (held bool) {
	u.ttft = append(u.ttft, ttft)
	if held = ttft <= u.slo.FirstToken(f.input); !held {
		u.missedTTFT++
	}
	return held
}

func (u *users) rest(tpot time.Duration) (held bool) {
	u.tpot = append(u.tpot, tpot)
	if held = tpot <= u.slo.TPOT; !held {
		u.missedTPOT++
	}
	return held
}

// report sums up.
func (u *users) report() Interactive {
	slices.Sort(u.ttft)
	slices.Sort(u.tpot)
	r := Interactive{
		MissedTTFT: u.missedTTFT, MissedTPOT: u.missedTPOT, Refused: u.rejected, Lost: u.losses, Undecided: u.undecided,
		TTFT: quantiles(u.ttft), TPOT: quantiles(u.tpot),
	}
	attained := 0
	for _, m := range u.minutes {
		r.Requests += m.judged
		attained += m.attained
	}
	r.Attainment = share(attained, r.Requests)
	r.Worst5Minutes, r.Worst5MinutesAt = u.worst()
	return r
}

// worst is the lowest attainment of arrivals in five minutes on end, and where
// these begin.
func (u *users) worst() (attainment, at float64) {
	const span = 5
	attainment = math.Inf(1)
	for i := range max(1, len(u.minutes)-span+1) {
		var sum minute
		for _, m := range u.minutes[i:min(i+span, len(u.minutes))] {
			sum.judged += m.judged
			sum.attained += m.attained
		}
		if s := share(sum.attained, sum.judged); s < attainment {
			attainment, at = s, (scenario.Edge + time.Duration(i)*time.Minute).Seconds()
		}
	}
	return attainment, at
}

// share of none is all: nobody was disappointed.
func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// quantiles of sorted times: the smallest that the share of all does not exceed.
func quantiles(sorted []time.Duration) Quantiles {
	at := func(q float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		i := int(math.Ceil(q*float64(len(sorted)))) - 1
		return float64(sorted[max(0, i)]) / float64(time.Millisecond)
	}
	return Quantiles{P50: at(0.50), P99: at(0.99)}
}
