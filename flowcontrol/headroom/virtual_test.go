package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestAnswerLengthsFromAHistogram(t *testing.T) {
	a := assumedAnswers()
	a.read([]flowcontrol.Bucket{{Upper: 100, Count: 10}, {Upper: math.Inf(1), Count: 10}})
	if a != assumedAnswers() {
		t.Error("ten answers show nothing")
	}
	a.read([]flowcontrol.Bucket{{Upper: 100, Count: 100}, {Upper: 900, Count: 200},
		{Upper: math.Inf(1), Count: 200}})
	// The middle of each quarter: 25 and 75 of the first hundred, 300 and 700 of the second.
	for i, want := range []float64{25, 75, 300, 700} {
		if got := a.lengths[i] + 1; !near(got, want) {
			t.Errorf("length %d is %v, want %v", i, got, want)
		}
	}
}

// An answer feels the mean of as many iterations as it has tokens.
func TestVirtualAnswersFeelTheMean(t *testing.T) {
	var v virtualAnswers
	lengths := [virtualLengths]float64{10, 1e9, 1e9, 1e9}
	var felt []float64
	for _, ms := range []float64{50, 150, 50, 50} { // five iterations each
		v.add(5, ms, 40, &lengths, func(mean, alone, share, _ float64) {
			felt = append(felt, mean)
			if alone != 40 || share != 1 {
				t.Errorf("alone %v, a share of %v, want 40 and 1", alone, share)
			}
		})
	}
	if len(felt) != 2 || felt[0] != 100 || felt[1] != 50 {
		t.Errorf("answers took %v ms a token, want 100 and 50", felt)
	}
}

// Answers are late because of batch lines only if they would have been in time without them.
func TestVirtualAnswersAreLateBecauseOfUs(t *testing.T) {
	for _, test := range []struct {
		name           string
		lines          int
		ms             float64
		late, innocent bool
	}{
		{"in time", 20, 60, false, false},
		{"late anyway", 0, 150, false, true},
		{"late because of lines", 300, 120, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, runners := newPool(t, nil, "r")
			r := runners[0]
			r.own.lines = test.lines
			for range 100 {
				c.countVirtual(noon, r, 10, test.ms, 0)
			}
			o := &c.virtual
			if o.requests <= 0 || (o.late > 0) != test.late ||
				(o.innocentShare.some > 0) != test.innocent {
				t.Errorf("%v of %v requests are late because of us, %v anyway", o.late, o.requests,
					o.innocentShare.some)
			}
		})
	}
}

// Requests come at any time: of two times of equal length, half of them meet the slow one, though
// it has fewer iterations.
func TestVirtualAnswersComeAtAnyTime(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	r := runners[0]
	c.answers.lengths = [virtualLengths]float64{10, 10, 10, 10}
	r.own.lines = 300
	for range 500 {
		for range 5 {
			c.countVirtual(noon, r, 10, 30, 0)
		}
		c.countVirtual(noon, r, 10, 150, 0)
	}
	o := &c.virtual
	if got := o.late / o.requests; got < 0.45 || got > 0.55 {
		t.Errorf("a share of %v is late, want a half", got)
	}
}

// What is late on runners without lines counts, beyond the usual share: routers send users there.
// It does so also before a quiet time has shown what is usual.
func TestInnocentAnswersLowerTheTarget(t *testing.T) {
	for _, quiet := range []float64{0, 1000} {
		c, _ := newPool(t, nil, "r")
		c.carriedAt = noon
		c.virtual.quiet = fadingShare{all: quiet, at: noon}
		before := c.target.value()
		for range 60 {
			c.virtual.requests, c.virtual.innocent = 10, 2
			c.updateTarget(noon.Add(time.Second))
		}
		if got := c.target.value(); got > 0.7*before {
			t.Errorf("the target share went from %v to %v with a quiet time of %v requests", before,
				got, quiet)
		}
	}
}

// Late virtual answers lower the target share, unless real requests show that they are in time.
func TestRealRequestsCorrectVirtualOnes(t *testing.T) {
	share := func(real bool) float64 {
		c, _ := newPool(t, nil, "r")
		for i := range 60 {
			now := noon.Add(time.Duration(i) * tick)
			c.virtual.requests, c.virtual.late = 10, 1
			c.virtual.lateShare.add(now, virtualWindow, 10, 1)
			if real {
				c.virtual.real.add(now, realWindow, 10, 0)
			}
			c.updateTarget(now)
		}
		return c.target.value()
	}
	c, _ := newPool(t, nil, "r")
	start := c.target.value()
	if got := share(false); got >= start {
		t.Errorf("the target share rose from %v to %v while a tenth was late", start, got)
	}
	if alone, corrected := share(false), share(true); corrected <= alone {
		t.Errorf("the target share is %v, and %v if no real request was late", alone, corrected)
	}
}

// Bursts make virtual answers late within single seconds. Many requests of which none was late
// correct these seconds too, and not only what is late on average.
func TestRealRequestsCorrectBursts(t *testing.T) {
	share := func(requests float64) float64 {
		c, _ := newPool(t, nil, "r")
		for i := range 1200 {
			now := noon.Add(time.Duration(i) * tick)
			if c.virtual.requests = 10; i%50 == 49 {
				c.virtual.late = 5
			}
			c.virtual.lateShare.add(now, virtualWindow, 10, c.virtual.late)
			c.virtual.real.add(now, realWindow, requests, 0)
			c.updateTarget(now)
		}
		return c.target.value()
	}
	c, _ := newPool(t, nil, "r")
	start := c.target.value()
	if got := share(10); got < start {
		t.Errorf("the target share fell from %v to %v while no request was late", start, got)
	}
	if got := share(0.05); got >= start {
		t.Errorf("60 requests in time raised the target share from %v to %v", start, got)
	}
}
