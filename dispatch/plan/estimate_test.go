package plan

import (
	"math"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

func TestExpectOutput(t *testing.T) {
	const model = "m"
	p := &Planner{cfg: DefaultConfig(), outputs: map[string]*outputMean{}}
	fresh := &job{key: JobKey{Model: model}}
	expect := func(what string, j *job, limit, want float64) {
		t.Helper()
		if got := p.expectOutput(j, limit); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s, limit %v: %v, want %v", what, limit, got, want)
		}
	}
	expect("nothing seen", fresh, 0, 256)
	expect("nothing seen", fresh, 1000, 256)
	expect("nothing seen", fresh, 16, 16)

	p.outputs[model] = &outputMean{}
	for _, tokens := range []int{10, 20, 60} {
		p.outputs[model].add(tokens)
	}
	expect("after 10, 20 and 60 of the model", fresh, 0, 30)
	expect("after 10, 20 and 60 of the model", fresh, 16, 16)

	essays := &job{key: JobKey{Model: model}}
	for range modelWeight {
		essays.output.add(2030)
	}
	expect("a job of essays among short answers", essays, 0, 1030)
	for range 200 * modelWeight {
		essays.output.add(2030)
	}
	if got := p.expectOutput(essays, 0); got < 1900 {
		t.Errorf("after many essays: %v, want nearly 2030", got)
	}
}

// Lines in flight can show that answers are long before any has finished. They never reduce the
// estimate.
func TestExpectOutputUsesLinesInFlight(t *testing.T) {
	p := &Planner{cfg: DefaultConfig(),
		outputs: map[string]*outputMean{"m": {mean: 100, seen: 1000}}}
	j := &job{key: JobKey{Model: "m"}}
	before := p.expectOutput(j, 0)
	if j.measured() {
		t.Error("measured is true before any token")
	}
	j.ages = ages{lines: 300}
	for tokens := int64(0); tokens <= 700; tokens++ {
		j.ages.tokens = 300 * tokens
		got := p.expectOutput(j, 0)
		if got < before || got < float64(300*tokens+modelWeight*100)/(300+modelWeight) {
			t.Fatalf("300 lines of %d tokens each: %v, want at least that and %v", tokens, got,
				before)
		}
		before = got
	}
	if before < 1000 || !j.measured() {
		t.Errorf("300 lines of 700 tokens each and no answer: %v are expected, want 1000 or more",
			before)
	}
	if got := p.expectOutput(j, 900); got != 900 {
		t.Errorf("with a limit of 900: %v", got)
	}
	// answers of 20 tokens, and the same lines in flight: long lines among short ones
	for range 5000 {
		j.output.add(20)
	}
	if got := p.expectOutput(j, 0); got < 20 || got > 120 {
		t.Errorf("5000 answers of 20 tokens: %v", got)
	}
}

// The work left of a job is estimated again when its answers are longer than those of its model.
func TestWorkFollowsTheAnswersOfTheJob(t *testing.T) {
	p := &Planner{cfg: DefaultConfig(),
		outputs: map[string]*outputMean{"m": {mean: 10, seen: 1000}}}
	j := &job{key: JobKey{Model: "m"}, lines: 1000}
	j.setMeans(ModelLines{Lines: 1000, PromptTokens: 50_000})
	before := p.workLeft(j)
	for range 100 {
		j.lines--
		j.output.add(2000)
	}
	if after := p.workLeft(j); after < 10*before {
		t.Errorf("900 lines of 2000 tokens count %v, 1000 lines of 10 counted %v", after, before)
	}
}

func TestOutputMeanFollowsChange(t *testing.T) {
	var o outputMean
	for range 10_000 {
		o.add(1000)
	}
	for range 3 * outputMemory {
		o.add(100)
	}
	if o.mean > 150 || o.mean < 100 {
		t.Errorf("long after the answers became short, the mean is %v, want nearly 100", o.mean)
	}
}

// An unseen job may be long whatever its model answered last. Its own answers decide soon.
func TestMostOutput(t *testing.T) {
	p := &Planner{cfg: DefaultConfig(),
		outputs: map[string]*outputMean{"m": {mean: 5, seen: 5000, longest: 5}}}
	most := func(what string, j *job, least, most float64) {
		t.Helper()
		if got := p.maxOutput(j); got < least || got > most {
			t.Errorf("%s: %v tokens, want %v to %v", what, got, least, most)
		}
	}
	unseen := func(limit float64) *job { return &job{key: JobKey{Model: "m"}, limitMean: limit} }
	most("after short answers", unseen(0), 12*256, 12*256)
	most("with a low limit", unseen(100), 100, 100)
	most("with a high limit", unseen(30_000), 15_000, 15_000)
	p.outputs["m"].longest = 4000
	most("after a job of long answers", unseen(0), 6000, 6000)
	most("after long answers, with a limit", unseen(5000), 5000, 5000)
	p.cfg.Cost.OutputTokens = 1
	p.outputs = map[string]*outputMean{}
	most("of a model without answers, by another assumption", unseen(0), 12, 12)

	p.cfg.Cost.OutputTokens = 256
	j := unseen(0)
	last := p.maxOutput(j)
	for range trustedAnswers {
		j.output.add(5)
		got := p.maxOutput(j)
		if got >= last {
			t.Fatalf("after %d answers of 5 tokens: %v, want less than %v", j.output.seen, got,
				last)
		}
		last = got
	}
	most("after 50 answers", j, p.expectOutput(j, 0), p.expectOutput(j, 0))
}

// The longest mean of a job is that of many answers.
func TestLongestJobOfAModel(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 64})
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m": {100}})
	w.load(0, 10)
	for i := range 100 {
		if got := w.planner.outputs["m"]; i == trustedAnswers-1 && got.longest != 0 {
			t.Errorf("after %d answers the longest job has %v tokens", i, got.longest)
		}
		w.finish(w.requests[0], Succeeded, 200, 0)
		if d := w.planner.Demand(); len(d) == 1 && (d[0].Most < d[0].Work ||
			d[0].Answered >= trustedAnswers && d[0].Most != d[0].Work) {
			t.Fatalf("after %d answers %+v", i+1, d[0])
		}
	}
	if got := w.planner.outputs["m"].longest; math.Abs(got-50) > 1e-9 {
		t.Errorf("the longest job has %v tokens, want 50", got)
	}
}

// While few lines of a job have ended beside those in flight, its answers may be long.
func TestLongOutput(t *testing.T) {
	p := &Planner{cfg: DefaultConfig()}
	for _, test := range []struct {
		name           string
		seen, inFlight int
		limit, want    float64
	}{
		{"nothing seen", 0, 0, 0, unseenFactor * 256},
		{"nothing seen, limited", 0, 0, 500, 500},
		{"few ended, many in flight", 20, 1000, 0, 3040},
		{"one at a time", 10, 1, 0, 100},
		{"twice as many ended as are in flight", 108, 50, 0, 100},
		{"expected above what is assumed", 0, 0, 50, 100},
	} {
		j := &job{inFlight: test.inFlight, output: outputMean{seen: test.seen}}
		if got := p.longOutput(j, 100, test.limit); math.Abs(got-test.want) > 10 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
