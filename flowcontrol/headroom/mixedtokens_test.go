package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Engines stand in for the first tokens of a gateway that counts batch lines, and do not show how
// long users' tokens take. Late answers that cannot be those of lines are those of users.
func TestLateUsersOfMixedCountsAreCharged(t *testing.T) {
	for _, test := range []struct {
		name         string
		users, lines float64 // late, of 10 and 100 in a reading
		charged      bool
	}{{"users are late", 3, 0, true}, {"lines are late", 0, 50, false}} {
		t.Run(test.name, func(t *testing.T) {
			p := newMixedPool(t)
			for range 20 {
				p.tokens.Requests += 110
				p.tokens.Late += test.users + test.lines
				p.lateLines = test.lines
				p.pass(true)
			}
			if charged := p.budget.late > 10; charged != test.charged {
				t.Errorf("%v late answers are charged", p.budget.late)
			}
		})
	}
}

// A line of one token has no time between tokens, and gateways do not count it. What is estimated
// too high does not hide users for ever.
func TestMixedTokensForget(t *testing.T) {
	var m mixedTokens
	slow := &flowcontrol.Answered{OutputTokens: 20, Latency: 10 * time.Second}
	m.answered(&flowcontrol.Answered{OutputTokens: 1, Latency: time.Second}, 100)
	if m.lines != 0 {
		t.Errorf("%v lines count", m.lines)
	}
	g := flowcontrol.NoReading(flowcontrol.Gateway, noon)
	g.TPOT = flowcontrol.Attainment{}
	m.users(&g)
	for range 50 {
		m.answered(slow, 100)
	}
	g.TPOT = flowcontrol.Attainment{Requests: 60}
	if requests, late, ok := m.users(&g); !ok || requests != 10 || late != 0 {
		t.Errorf("%v of %v users late, %v", late, requests, ok)
	}
	g.TPOT = flowcontrol.Attainment{Requests: 70, Late: 5}
	if requests, late, ok := m.users(&g); !ok || requests != 10 || late != 5 {
		t.Errorf("%v of %v users late, %v", late, requests, ok)
	}
}

// The duration of answers of a few tokens is mostly the time of their prompt, so a part of the late
// ones is supposed to be users'.
func TestMixedTokensOfShortLines(t *testing.T) {
	var m mixedTokens
	g := flowcontrol.NoReading(flowcontrol.Gateway, noon)
	g.TPOT = flowcontrol.Attainment{}
	m.users(&g)
	for range 90 {
		m.answered(&flowcontrol.Answered{OutputTokens: 3, Latency: time.Second}, 100)
	}
	g.TPOT = flowcontrol.Attainment{Requests: 100, Late: 20}
	want := 20 * 10.0 / (10 + 90*shortLate)
	if requests, late, ok := m.users(&g); !ok || requests != 10 || !near(late, want) {
		t.Errorf("%v of %v users late, %v, want some of 10", late, requests, ok)
	}
}
