package simulator

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// interactiveStats measures how interactive requests fared. A request is counted by its time of
// arrival.
type interactiveStats struct {
	from, to time.Time // bounds of the arrivals that are counted
	classes  []*class  // the first is for requests without a class
	byName   map[string]int

	overload overload
	window   *answeredWindow // of the timeline; nil: there is none
	gateway  *gateway        // nil: the scenario has no gateway
	scenario scenario.Scenario
	cost     costmodel.Model // of the engine
}

func newInteractiveStats(setup Setup) *interactiveStats {
	sc := setup.Scenario
	s := &interactiveStats{from: epoch.Add(scenario.Edge),
		to:     epoch.Add(sc.Horizon - scenario.Edge),
		byName: map[string]int{}, scenario: sc, cost: setup.Profile.CostModel}
	for i, c := range sc.Interactive.All() {
		class := s.newClass(c.Name, c.SLO)
		class.flow = c.Flow
		s.classes = append(s.classes, class)
		s.byName[c.Name] = i
	}
	return s
}

func (s *interactiveStats) newClass(name string, slo scenario.SLO) *class {
	return &class{name: name, slo: slo,
		minutes: make([]minute, (s.to.Sub(s.from)+time.Minute-1)/time.Minute)}
}

// minute returns the minute of a request's arrival; nil if the request is not counted.
func (s *interactiveStats) minute(req *request) *minute {
	if req.arrived.Before(s.from) || !req.arrived.Before(s.to) {
		return nil
	}
	return &s.classes[req.class].minutes[req.arrived.Sub(s.from)/time.Minute]
}

// firstToken counts a request's first token.
func (s *interactiveStats) firstToken(r *replica, req *request) {
	slo := s.classes[req.class].slo
	s.overload.waited(r, req.sent, req.first, slo)
}

func (s *interactiveStats) finished(req *request, c engine.Completion) {
	class := s.classes[req.class]
	tpot := timePerToken(c)
	if m := s.minute(req); m != nil {
		ttft := c.FirstToken.Sub(req.arrived) + engine.ServerDelay(1) + req.back(s.scenario)
		held := class.firstToken(req, ttft)
		if tpot > 0 {
			held = class.outputTokens(tpot) && held
		}
		s.window.add(ttft, tpot, held)
		class.prompts += int64(req.input)
		class.cached += int64(c.Cached)
		m.judged++
		if held {
			m.attained++
		}
		if req.offer != nil {
			took := c.Finished.Sub(req.arrived) + engine.ServerDelay(c.Output) +
				req.back(s.scenario)
			class.through.answered(took/time.Duration(c.Output), class.flow.Objective,
				s.cost.LineWork(req.input, c.Output))
		}
	}
	req.user.answered(c)
}

// admitted counts the time for which a request has waited for a place.
func (s *interactiveStats) admitted(req *request, waited time.Duration) {
	if s.minute(req) != nil {
		s.classes[req.class].through.waited.add(waited)
	}
}

// turnedAway counts a request that got no place.
func (s *interactiveStats) turnedAway(req *request) {
	if m := s.minute(req); m != nil {
		m.judged++
		s.classes[req.class].through.refused++
	}
	req.user.failed()
}

// rejected counts a request that no engine can serve.
func (s *interactiveStats) rejected(req *request) {
	if m := s.minute(req); m != nil {
		m.judged++
		s.classes[req.class].rejected++
	}
	req.user.failed()
}

// lost counts a request that was cut off with its replica or found none.
func (s *interactiveStats) lost(req *request) {
	if m := s.minute(req); m != nil {
		m.judged++
		s.classes[req.class].lost++
	}
	req.user.failed()
}

// timedOut notes that a user has waited too long for a first token. The user then retries or gives
// up.
func (s *interactiveStats) timedOut(req *request, now time.Time) {
	s.overload.waited(req.replica, req.sent, now, s.classes[req.class].slo)
}

// retried counts another try of a request.
func (s *interactiveStats) retried(req *request) {
	if s.minute(req) != nil {
		s.classes[req.class].retries++
	}
}

// gaveUp counts a request that its user has given up, without a token.
func (s *interactiveStats) gaveUp(req *request, now time.Time) {
	if m := s.minute(req); m != nil {
		class := s.classes[req.class]
		class.ttft.add(now.Sub(req.arrived))
		class.missedTTFT++
		class.gaveUp++
		m.judged++
	}
}

// endOfRun counts a request that is inside an engine when the run ends. It has missed if one of its
// times is exceeded already; otherwise it is undecided.
func (s *interactiveStats) endOfRun(req *request, end time.Time) {
	class := s.classes[req.class]
	if req.first.IsZero() {
		s.overload.waited(req.replica, req.sent, end, class.slo)
	}
	m := s.minute(req)
	if m == nil {
		return
	}
	var held bool
	var age time.Duration
	if req.first.IsZero() {
		held = class.firstToken(req, end.Sub(req.arrived))
	} else {
		held = class.firstToken(req, req.first.Sub(req.arrived)+engine.ServerDelay(1)+
			req.back(s.scenario))
		age = end.Sub(req.first)
	}
	// To meet the objective, all of its tokens would have to be there by now.
	if req.output > 1 && age/time.Duration(req.output-1) > class.slo.TPOT {
		class.missedTPOT++
		held = false
	}
	if held {
		class.undecided++
		return
	}
	m.judged++
}

// all returns the sum of all classes.
func (s *interactiveStats) all() *class {
	all := s.newClass("", scenario.SLO{})
	for _, c := range s.classes {
		all.merge(c)
	}
	return all
}

// report sums up all classes, and each if there are several.
func (s *interactiveStats) report() Interactive {
	r := s.all().report()
	r.Overload = s.overload.report()
	if len(s.classes) == 1 {
		r.Flow = s.classes[0].flowReport(s.scenario.Inline(), r.Requests)
		return r
	}
	for _, c := range s.classes {
		of := c.report()
		of.Flow = c.flowReport(s.scenario.Inline(), of.Requests)
		r.Classes = append(r.Classes, Class{Name: c.name, Interactive: of})
	}
	return r
}
