package headroom

import (
	"math"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestAtLeast(t *testing.T) {
	for _, test := range []struct {
		k          int
		mean, want float64
	}{
		{0, 5, 1},
		{1, 0, 0},
		{1, 0.1, 0.0952},
		{2, 1, 0.2642},
		{3, 2, 0.3233},
		{manyPrompts, 30, 0.5243},
		{manyPrompts + 1, 1000, 0}, // the mean iteration decides
	} {
		if got := atLeast(test.k, test.mean); math.Abs(got-test.want) > 5e-5 {
			t.Errorf("%d or more of %v on average: %v, want %v", test.k, test.mean, got, test.want)
		}
	}
}

// allAnswers are of the same length, in tokens after the first.
func allAnswers(tokens float64) (a answerLengths) {
	for i := range a.fine {
		a.fine[i] = tokens
	}
	return a
}

func TestLateByPrompts(t *testing.T) {
	const alone, objective = 40, 100
	load := promptLoad{cost: 200, added: 100, most: 80}
	late := func(tokens, part float64, p promptLoad) float64 {
		a := allAnswers(tokens)
		return a.lateByPrompts(part, p, alone, objective)
	}
	// An answer of two tokens has 120 ms to spare. It is late by two prompts; 0.7 come on average
	// within 80 ms and its own prompt of 200 ms.
	if got, want := late(2, 0.5, load), 0.1558; !near(got, want) {
		t.Errorf("%v of the short answers are late, want %v", got, want)
	}
	for _, test := range []struct {
		name string
		part float64
		p    promptLoad
		late bool
	}{
		{"a chunk fits", 0.9, promptLoad{200, 100, 0.8 * (objective - alone)}, false},
		{"a chunk hardly fits", 0.9, promptLoad{200, 100, 0.9 * (objective - alone)}, true},
		{"no prompts", 0, load, false},
		{"prompts of unknown size", 0.9, promptLoad{most: 80}, false},
	} {
		if got := late(2, test.part, test.p); got > 0 != test.late {
			t.Errorf("%s: %v are late", test.name, got)
		}
	}
	last := 0.0
	for _, part := range []float64{0.01, 0.1, 0.3, 0.9} {
		if got := late(5, part, load); got <= last {
			t.Errorf("%v are late at a part of %v, want more than %v", got, part, last)
		} else {
			last = got
		}
	}
	last = 1
	for _, tokens := range []float64{2, 5, 10, 20} {
		if got := late(tokens, 0.5, load); got >= last {
			t.Errorf("%v of answers of %v tokens are late, want less than %v", got, tokens, last)
		} else {
			last = got
		}
	}
	// Half of the answers are so long that single prompts do no harm.
	mixed := allAnswers(2)
	for i := range fineLengths / 2 {
		mixed.fine[i] = 1000
	}
	if got, want := mixed.lateByPrompts(0.5, load, alone, objective), late(2, 0.5, load)/2; !near(
		got, want) {
		t.Errorf("%v are late if half of the answers are long, want %v", got, want)
	}
}

func TestPartByTokenTimes(t *testing.T) {
	pool := func(chunk int) *Controller {
		c, _ := newPool(t, func(c *flowcontrol.Config) { c.Engine.MaxBatchedTokens = chunk }, "r")
		c.alone.usual = 40
		c.sizes.start(3000, 0, 100, 100)
		return c
	}
	c := pool(2048)
	late := func(part float64) float64 {
		return c.answers.lateByPrompts(part, c.promptLoad(), 40, c.objectiveTime())
	}
	last := 0.0
	for _, share := range []float64{0.0001, 0.002, 0.05} {
		part := c.partByTokenTimes(share)
		if part <= last || late(part) > share || late(part+1e-4) <= share {
			t.Errorf("a part of %v makes %v late, one a little larger %v, allowed are %v", part,
				late(part), late(part+1e-4), share)
		}
		last = part
	}
	if got := c.partByTokenTimes(1); got != maxPromptShare {
		t.Errorf("the part is %v where all may be late, want %v", got, maxPromptShare)
	}
	if got := pool(256).partByTokenTimes(0); got != maxPromptShare {
		t.Errorf("the part is %v where a chunk fits, want %v", got, maxPromptShare)
	}
	// Until iterations are known, those of the cost model count.
	c.alone.usual = c.fit.perIteration()
	want := c.partByTokenTimes(0.002)
	if c.alone.usual = 0; c.partByTokenTimes(0.002) != want {
		t.Errorf("the part is %v by the cost model, want %v", c.partByTokenTimes(0.002), want)
	}
}

// A part of the time that long prompts take makes more answers late than the same part of short
// ones, although the mean is the same.
func TestLongPromptsMakeMoreAnswersLate(t *testing.T) {
	late := func(prompts ...int) float64 {
		c, _ := newPool(t, nil, "r")
		for range 50 {
			for _, n := range prompts {
				c.sizes.start(n, 0, 10, 10)
			}
		}
		return c.answers.lateByPrompts(0.05, c.promptLoad(), 60, 80)
	}
	same, mixed := late(1000, 1000), late(100, 1900)
	if mixed < 1.2*same {
		t.Errorf("%.4f late with prompts of 100 and 1,900 tokens, %.4f with 1,000", mixed, same)
	}
}
