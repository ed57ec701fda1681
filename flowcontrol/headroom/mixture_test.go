package headroom

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// countedRequests is what a gateway counts for some minutes.
type countedRequests struct {
	minutes float64
	mixed   bool    // batch lines count
	yields  float64 // by how many lines a second the policy reacts to a request a second
}

// read passes readings every five seconds to a mixture. Users ask ten times a second on average,
// more in some minutes than in others; about as many lines are answered, after a first minute.
func (r countedRequests) read(seed uint64) *mixture {
	const every, usual = 5.0, 10.0
	random, m := rand.New(rand.NewPCG(seed, 1)), &mixture{}
	count := func(mean float64) (n float64) {
		for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
			n++
		}
		return n
	}
	busy := 0.0 // more requests a second than usual
	for s := 0.0; s < 60*r.minutes; s += every {
		busy += 0.5*random.NormFloat64() - 0.05*busy
		lines := 0.0
		if s >= 60 {
			lines = max(0, 10+3*math.Sin(s/120)-r.yields*busy)
		}
		m.answers = count(every * lines)
		requests := count(every * max(0, usual+busy))
		if r.mixed {
			requests += m.answers
		}
		m.read(noon.Add(fromMilliseconds(1000*s)), requests, every)
	}
	return m
}

// A gateway that counts batch lines is recognised within minutes, and one that does not is not.
func TestMixtureOfUsersAndLines(t *testing.T) {
	for _, r := range []countedRequests{
		{minutes: 5, mixed: true}, {minutes: 30, mixed: true},
		{minutes: 30, mixed: true, yields: 0.5},
		{minutes: 5}, {minutes: 30}, {minutes: 5, yields: 1}, {minutes: 30, yields: 1},
	} {
		t.Run(fmt.Sprintf("%+v", r), func(t *testing.T) {
			for seed := range uint64(20) {
				if got := r.read(seed).mixed(); got != r.mixed {
					t.Errorf("seed %d: mixed is %v", seed, got)
				}
			}
		})
	}
}

// A gateway that counts only a few of the lines is not mixed, however sure that is, nor one that
// counts fewer requests in times of many lines.
func TestMixtureNeedsMostLines(t *testing.T) {
	for _, test := range []struct {
		counted float64
		want    bool
	}{{-1, false}, {0.9 * mixedSlope, false}, {1, true}} {
		var m mixture
		for i := range 300 {
			m.answers = float64(10 * (i % 7))
			m.read(noon.Add(time.Duration(i)*mixturePeriod*time.Second),
				100+test.counted*m.answers, mixturePeriod)
		}
		if got := m.mixed(); got != test.want {
			t.Errorf("mixed is %v if %v of the lines count", got, test.counted)
		}
	}
}

// What may be chance is no mixture: the users' requests differ far more than those of the lines.
func TestMixtureNeedsCertainty(t *testing.T) {
	for _, test := range []struct {
		noise float64
		want  bool
	}{{20, false}, {0.5, true}} {
		var m mixture
		for i := range 60 {
			m.answers = float64(i % 2)
			users := 50 + test.noise*float64((i+1)%3-1) // does not depend on the lines
			m.read(noon.Add(time.Duration(i)*mixturePeriod*time.Second), users+m.answers,
				mixturePeriod)
		}
		if got := m.mixed(); got != test.want {
			t.Errorf("mixed is %v with requests that differ by %v", got, test.noise)
		}
	}
}

// Readings that come more often are compared over as long a time.
func TestMixtureOfFrequentReadings(t *testing.T) {
	var m mixture
	for i := range 600 { // a line is answered here, and counted with the next reading
		m.answers += float64(i % 20 / 10)
		m.read(noon.Add(time.Duration(i)*time.Second/2), 10+float64((i+19)%20/10), 0.5)
	}
	if !m.mixed() {
		t.Error("mixed is false where lines are counted half a second later")
	}
	for _, requests := range []float64{-1, math.NaN()} {
		m.read(noon, 10, 1)
		if m.read(noon, requests, 1); m.known || m.requests != 0 {
			t.Errorf("after %v requests, the time before is compared", requests)
		}
	}
}

// Few readings show nothing, nor does a number of lines that never changes.
func TestMixtureNeedsReadings(t *testing.T) {
	var m, constant mixture
	for i := range fewReadings + 2 { // the first shows no change, and older ones count less
		if m.mixed() {
			t.Fatalf("mixed is true after %d readings", i)
		}
		now := noon.Add(time.Duration(i) * 5 * time.Second)
		m.answers, constant.answers = float64(10*(i%2)), 10
		m.read(now, 20+m.answers, 5)
		constant.read(now, 20+float64(i), 5)
	}
	if !m.mixed() {
		t.Errorf("mixed is false after %d readings without noise", fewReadings+2)
	}
	if constant.mixed() {
		t.Error("mixed is true though as many lines end all the time")
	}
	if m.answers != 0 {
		t.Errorf("%v answers are counted again", m.answers)
	}
}

// A gateway that counts lines with users serves as a brake only: lines that are in time do not let
// more of them run while users are late.
func TestMixedCountsOnlyBrake(t *testing.T) {
	for _, mixed := range []bool{true, false} {
		c, _ := newPool(t, nil, "r")
		c.ownShare.mean = 0.5
		if mixed {
			c.mixture.changes, c.mixture.xx, c.mixture.xy, c.mixture.yy = 1000, 1e6, 1e6, 1e6
		}
		before, requests, late := c.promptTokens.value, 0.0, 0.0
		for i := range 60 {
			at := noon.Add(time.Duration(i+1) * 5 * time.Second)
			c.linesAnswered = 1000
			requests, late = requests+1010, late+2 // 2 of 10 users
			r := flowcontrol.NoReading(flowcontrol.Gateway, at)
			r.TTFT = flowcontrol.Attainment{Requests: requests, Late: late}
			c.readGateway(at, &r)
		}
		if fell := c.promptTokens.value < before; fell != mixed {
			t.Errorf("mixed %v: the level of prompts went from %v to %v", mixed, before,
				c.promptTokens.value)
		}
		if spent := c.budget.left() < 0.5; spent != mixed {
			t.Errorf("mixed %v: %v of the budget is left", mixed, c.budget.left())
		}
	}
}

// Of the late answers that a gateway counts for lines and users, users have their share.
func TestLateAnswersOfMixedCountsAreShared(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	c.ownShare.mean = 0.9
	c.mixture.changes, c.mixture.xx, c.mixture.xy, c.mixture.yy = 1000, 1e6, 1e6, 1e6
	requests, late := 0.0, 0.0
	for i := range 3 {
		at := noon.Add(time.Duration(i+1) * 5 * time.Second)
		c.linesAnswered = 90
		r := flowcontrol.NoReading(flowcontrol.Gateway, at)
		r.TPOT = flowcontrol.Attainment{Requests: requests, Late: late}
		c.readGateway(at, &r)
		requests, late = requests+100, late+10
	}
	// Twenty were late; ten of a hundred requests are those of users.
	if got := c.budget.late; got < 1 || got > 2 {
		t.Errorf("%v late answers are charged, want one or two of 20", got)
	}
}

// A gateway counts the first token of a long line half a minute before its answer. Where it shows
// how many answers have ended, those are compared.
func TestMixtureOfLongLines(t *testing.T) {
	for _, shows := range []string{"lengths", "token times", "first tokens"} {
		random, m, started := rand.New(rand.NewPCG(1, 1)), mixture{}, [120]float64{}
		first, ended := 0.0, 0.0
		for i := range started {
			started[i] = float64(random.IntN(20))
			first += started[i] + 5
			if ended += 5; i >= 6 {
				m.answers = started[i-6]
				ended += started[i-6]
			}
			at := noon.Add(time.Duration(i) * mixturePeriod * time.Second)
			g := flowcontrol.NoReading(flowcontrol.Gateway, at)
			g.TTFT.Requests = first
			switch shows {
			case "lengths":
				g.AnswerLengths = []flowcontrol.Bucket{{Upper: 10}, {Upper: math.Inf(1),
					Count: ended}}
			case "token times":
				g.TPOT.Requests = ended
			}
			m.count(at, &g)
		}
		if got, want := m.mixed(), shows != "first tokens"; got != want {
			t.Errorf("%s: mixed is %v", shows, got)
		}
	}
}

// Lines that were answered before a gateway shows itself are in no period of its counts.
func TestLinesBeforeTheFirstReadingAreNotCompared(t *testing.T) {
	var m mixture
	m.answers = 10_000
	for s := range 3 {
		g := flowcontrol.NoReading(flowcontrol.Gateway, noon.Add(time.Duration(5*s)*time.Second))
		g.TTFT = flowcontrol.Attainment{Requests: float64(50 * s)}
		m.count(g.Sampled, &g)
	}
	if m.xx > 0 {
		t.Errorf("the lines count as a change of %v a second", math.Sqrt(m.xx))
	}
}
