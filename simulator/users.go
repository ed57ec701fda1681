package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// users judge what interactive requests got. A request counts by when it came.
type users struct {
	from, to time.Time // of arrivals that are judged
	classes  []*class  // the first is of what has no other
	byName   map[string]int

	overload overload
	window   *window  // of the tape; nil: there is none
	gateway  *gateway // nil: nothing measures what they get
}

func newUsers(s scenario.Scenario) *users {
	u := &users{from: epoch.Add(scenario.Edge), to: epoch.Add(s.Horizon - scenario.Edge),
		byName: map[string]int{}}
	for i, c := range s.Interactive.All() {
		u.classes = append(u.classes, u.class(c.Name, c.SLO))
		u.byName[c.Name] = i
	}
	return u
}

func (u *users) class(name string, slo scenario.SLO) *class {
	return &class{name: name, slo: slo,
		minutes: make([]minute, (u.to.Sub(u.from)+time.Minute-1)/time.Minute)}
}

// minute is that of a request's arrival, nil if it is not judged.
func (u *users) minute(f *flight) *minute {
	if f.arrived.Before(u.from) || !f.arrived.Before(u.to) {
		return nil
	}
	return &u.classes[f.class].minutes[f.arrived.Sub(u.from)/time.Minute]
}

// begun notes a request's first token.
func (u *users) begun(r *replica, f *flight) {
	slo := u.classes[f.class].slo
	u.overload.waited(r, f.sent, f.first, slo)
	if g := u.gateway; g != nil {
		seen := f.first.Add(engine.ServerDelay(1))
		g.see(seen, &g.ttft[f.class], seen.Sub(f.sent), seen.Sub(f.arrived) > slo.FirstToken(
			f.input))
	}
}

func (u *users) finished(f *flight, c engine.Completion) {
	class := u.classes[f.class]
	tpot := time.Duration(0) // of a single token there is none
	if c.Output > 1 {
		rest := c.Finished.Sub(c.FirstToken) + engine.ServerDelay(c.Output) - engine.ServerDelay(1)
		tpot = rest / time.Duration(c.Output-1)
		if g := u.gateway; g != nil {
			g.see(c.Finished.Add(engine.ServerDelay(c.Output)), &g.tpot[f.class], tpot,
				tpot > class.slo.TPOT)
		}
	}
	if m := u.minute(f); m != nil {
		ttft := c.FirstToken.Sub(f.arrived) + engine.ServerDelay(1)
		held := class.firstToken(f, ttft)
		if tpot > 0 {
			held = class.rest(tpot) && held
		}
		u.window.add(ttft, tpot, held)
		m.judged++
		if held {
			m.attained++
		}
	}
	f.person.answered(c)
}

// refused counts a request that no engine can serve.
func (u *users) refused(f *flight) {
	if m := u.minute(f); m != nil {
		m.judged++
		u.classes[f.class].rejected++
	}
	f.person.failed()
}

// lost counts a request that was cut off with its replica, or found none.
func (u *users) lost(f *flight) {
	if m := u.minute(f); m != nil {
		m.judged++
		u.classes[f.class].lost++
	}
	f.person.failed()
}

// hungUp notes that a user has waited too long; what comes of the request, the
// user says by trying again or giving up.
func (u *users) hungUp(f *flight, now time.Time) {
	u.overload.waited(f.replica, f.sent, now, u.classes[f.class].slo)
}

// retried counts another try of a request.
func (u *users) retried(f *flight) {
	if u.minute(f) != nil {
		u.classes[f.class].retries++
	}
}

// gaveUp counts a request that its user has given up: it never got a token.
func (u *users) gaveUp(f *flight, now time.Time) {
	if m := u.minute(f); m != nil {
		class := u.classes[f.class]
		class.ttft.add(now.Sub(f.arrived))
		class.missedTTFT++
		class.gaveUp++
		m.judged++
	}
}

// cutOff judges a request that the end of the run finds inside an engine: it has
// missed if one of its times is over already; what else becomes of it, nobody
// knows.
func (u *users) cutOff(f *flight, end time.Time) {
	class := u.classes[f.class]
	if f.first.IsZero() {
		u.overload.waited(f.replica, f.sent, end, class.slo)
	}
	m := u.minute(f)
	if m == nil {
		return
	}
	held, age := true, time.Duration(0)
	if f.first.IsZero() {
		held = class.firstToken(f, end.Sub(f.arrived))
	} else {
		held = class.firstToken(f, f.first.Sub(f.arrived)+engine.ServerDelay(1))
		age = end.Sub(f.first)
	}
	// Its tokens would have to be here by now, all of them.
	if f.output > 1 && age/time.Duration(f.output-1) > class.slo.TPOT {
		class.missedTPOT++
		held = false
	}
	if held {
		class.undecided++
		return
	}
	m.judged++
}

// all is the classes together.
func (u *users) all() *class {
	all := u.class("", scenario.SLO{})
	for _, c := range u.classes {
		all.merge(c)
	}
	return all
}

// report sums up.
func (u *users) report() Interactive {
	r := u.all().report()
	r.Overload = u.overload.report()
	if len(u.classes) > 1 {
		for _, c := range u.classes {
			r.Classes = append(r.Classes, Class{Name: c.name, Interactive: c.report()})
		}
	}
	return r
}
