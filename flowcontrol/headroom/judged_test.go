package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Where no gateway counts answers, they follow from the iterations of runners with interactive
// requests: each of these has an answer in as many iterations as answers have tokens.
func TestJudgedAnswersFollowFromIterations(t *testing.T) {
	const users, iterations = 3, 5000.0
	for _, test := range []struct {
		name        string
		lines       int
		ms          float64
		late, added bool
	}{
		{"in time", 20, 60, false, false},
		{"late anyway", 0, 150, true, false},
		{"late because of lines", 300, 120, true, true},
	} {
		c, runners := newPool(t, nil, "r")
		r := runners[0]
		r.own.lines = test.lines
		answers := users * iterations / c.answers.mean()
		c.countVirtual(noon, r, 1000, test.ms, 0)
		if got := c.Judged().Tokens.Requests; got != 0 {
			t.Errorf("%s: %v answers of unknown users count", test.name, got)
		}
		r.interactive.seenAt, r.interactive.running.mean = noon, users
		for range int(iterations) / 10 {
			c.countVirtual(noon, r, 10, test.ms, 0)
		}
		got := c.Judged().Tokens
		if got.Requests < 0.95*answers || got.Requests > 1.05*answers ||
			got.Estimated != got.Requests {
			t.Errorf("%s: %+v, want about %v answers", test.name, got, answers)
		}
		if (got.Late > 0.99*got.Requests) != test.late || (got.Added > 0) != test.added {
			t.Errorf("%s: %+v, want late: %t, because of lines: %t", test.name, got, test.late,
				test.added)
		}
	}
}

// Late requests are added by batch work as far as the budget of late requests is charged.
func TestJudgedFirstTokensAreChargedAsTheBudgetIs(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	p := &enginePool{Controller: c, now: noon}
	for range 40 {
		p.report(10, 0, 0)
	}
	quiet := p.Judged().FirstTokens
	if quiet.Requests < 360 || quiet.Late != 0 || quiet.Added != 0 {
		t.Errorf("without lines: %+v, want nearly 400 in time", quiet)
	}
	for range 200 {
		p.ownShare.mean = 0.5
		p.attribution.slowdowns.add(p.now, 2)
		p.report(10, 1, 0)
	}
	got := p.Judged().FirstTokens
	if got.Late < 150 || got.Late > 200 || got.Added < 100 || got.Added > got.Late {
		t.Errorf("beside lines: %+v, want some 200 late ones, most of them because of lines", got)
	}
}

// What a gateway counts goes before what is concluded from iterations.
func TestJudgedAnswersAreThoseOfTheGateway(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	r := runners[0]
	for i := range 30 {
		now := noon.Add(time.Duration(i) * time.Second)
		g := flowcontrol.NoReading(flowcontrol.Gateway, now)
		g.TPOT = flowcontrol.Attainment{Requests: 7 * float64(i), Late: float64(i)}
		c.Observe(now, &flowcontrol.Read{Reading: &g})
		r.interactive.seenAt, r.interactive.running.mean = now, 9
		if i > 0 {
			c.countVirtual(now, r, 1000, 60, 0)
		}
	}
	want := flowcontrol.Judgement{Requests: 7 * 29, Late: 29, Estimated: 7 * 29}
	if got := c.Judged().Tokens; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
