package plan

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// testEngine admits requests in order, as its slots and its token budget allow, and computes the
// prompts that it has admitted at a rate of at least plausiblePrefill. Lines arrive an iteration
// after they were sent.
type testEngine struct {
	lines *inFlightLines
	job   *job
	now   time.Time

	arriving         []*testRequest
	waiting, running []*testRequest
	counters         sample
	slots, budget    int
	iteration        time.Duration
}

type testRequest struct {
	number     uint64 // of the Start; 0: a user's
	missing    int    // tokens of its prompt
	prompt     int
	output     int
	computed   bool
	admittedAt time.Time
}

// add sends a line to the engine, or a request of a user if the line has the number 0.
func (e *testEngine) add(number uint64, prompt, output int, stream bool) {
	r := &testRequest{number: number, missing: prompt, prompt: prompt, output: output}
	if number == 0 { // users' requests wait before lines
		at := 0
		for at < len(e.waiting) && e.waiting[at].number == 0 {
			at++
		}
		e.waiting = append(e.waiting[:at], append([]*testRequest{r}, e.waiting[at:]...)...)
		return
	}
	e.arriving = append(e.arriving, r)
	e.lines.add(e.now, &Start{number: number, job: e.job, Stream: stream,
		line: line{prompt: int32(prompt)}})
}

// iterate runs one iteration. It returns the requests that have ended.
func (e *testEngine) iterate() (ended []*testRequest) {
	e.now = e.now.Add(e.iteration)
	var running []*testRequest
	for budget := e.budget; ; {
		for _, r := range e.running {
			done := min(budget, r.missing)
			r.missing, budget = r.missing-done, budget-done
		}
		if budget == 0 || len(e.waiting) == 0 || len(e.running) == e.slots {
			break
		}
		e.waiting[0].admittedAt = e.now
		e.running, e.waiting = append(e.running, e.waiting[0]), e.waiting[1:]
	}
	e.waiting, e.arriving = append(e.waiting, e.arriving...), nil
	for _, r := range e.running {
		switch {
		case r.missing > 0:
			running = append(running, r)
			continue
		case !r.computed:
			r.computed = true
			e.counters.prompt += float64(r.prompt)
		default:
			e.counters.gaps++
			e.counters.gapTime += e.iteration.Seconds()
		}
		e.counters.output++
		if r.output--; r.output <= 0 {
			ended = append(ended, r)
		} else {
			running = append(running, r)
		}
	}
	e.running = running
	return ended
}

func (e *testEngine) reading() *flowcontrol.Reading {
	r := flowcontrol.NoReading(flowcontrol.Metrics, e.now)
	r.Running, r.Waiting = float64(len(e.running)), float64(len(e.waiting))
	r.PromptTokens, r.OutputTokens = e.counters.prompt, e.counters.output
	r.TokenGaps, r.TokenGapTime = e.counters.gaps, e.counters.gapTime
	return &r
}

func (e *testEngine) request(number uint64) *testRequest {
	for _, r := range slices.Concat(e.running, e.waiting, e.arriving) {
		if r.number == number {
			return r
		}
	}
	return nil
}

// Metrics of an engine show which prompts are computed. No prompt is taken for computed that is
// not, up to the end of the iteration in which the engine works on it, and no age is too high.
func TestMetricsShowWhatIsComputed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &testEngine{lines: &inFlightLines{}, job: &job{id: "j"}, now: noon,
			slots: rapid.SampledFrom([]int{2, 8, 200}).Draw(t, "slots"),
			iteration: time.Millisecond *
				time.Duration(rapid.IntRange(20, 100).Draw(t, "iteration")),
		}
		e.budget = int(math.Ceil(plausiblePrefill*e.iteration.Seconds())) *
			rapid.IntRange(1, 5).Draw(t, "budget")
		number, delayed := uint64(0), []*flowcontrol.Reading(nil)
		produced := map[uint64]int{}
		check := func() {
			known, tokens := 0, int64(0)
			for i := range e.lines.lines {
				l := &e.lines.lines[i]
				r := e.request(l.number)
				if !l.computed {
					known += int(l.uncached)
					continue
				}
				if l.presumed {
					if wait := e.now.Sub(l.sent); wait < arrivalTime+e.iteration {
						t.Fatalf("line %d is presumed to be computed after %v", l.number, wait)
					}
					continue
				}
				if r == nil || !r.computed && r.admittedAt.IsZero() {
					t.Fatalf("line %d counts as computed and waits", l.number)
				}
				if !r.computed && r.missing > e.budget {
					t.Fatalf("line %d counts as computed, and misses %d of %d tokens", l.number,
						r.missing, r.prompt)
				}
				tokens += int64(produced[l.number])
			}
			if e.lines.prefilling != known {
				t.Fatalf("%d prompt tokens wait, want %d", e.lines.prefilling, known)
			}
			if e.job.ages.tokens > tokens {
				t.Fatalf("lines have %d tokens by their ages, and %d in the engine",
					e.job.ages.tokens, tokens)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				number++
				e.add(number, rapid.IntRange(1, 3000).Draw(t, "prompt"),
					rapid.IntRange(1, 100).Draw(t, "output"), false)
			},
			"user": func(t *rapid.T) {
				e.add(0, rapid.IntRange(1, 3000).Draw(t, "prompt"), 20, false)
			},
			"iterate": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "iterations") {
					for _, r := range e.running {
						if r.computed {
							produced[r.number]++
						}
					}
					ended := e.iterate()
					for _, r := range ended {
						if r.number > 0 {
							e.lines.answered(e.now, r.number)
							e.lines.remove(r.number)
						}
					}
				}
				e.lines.settle(e.now)
			},
			"evict": func(t *rapid.T) {
				e.lines.evict("r", rapid.IntRange(0, 20).Draw(t, "keep"), nil)
			},
			"read": func(t *rapid.T) {
				e.lines.read(e.now, e.reading())
				e.lines.settle(e.now)
			},
			"read late": func(t *rapid.T) {
				if len(delayed) > 0 {
					e.lines.read(e.now, delayed[0])
					e.lines.settle(e.now)
				}
				delayed = append(delayed, e.reading())[min(1, len(delayed)):]
			},
			"": func(*rapid.T) { check() },
		})
	})
}

// Two readings after a line was sent, its prompt is known to be computed.
func TestMetricsShowPromptsSoon(t *testing.T) {
	e := &testEngine{lines: &inFlightLines{}, job: &job{id: "j"}, now: noon, slots: 200,
		budget: 512, iteration: 50 * time.Millisecond}
	for second := range 60 {
		e.lines.read(e.now, e.reading())
		e.lines.settle(e.now)
		if second > 2 && e.lines.prefilling > 2*700 {
			t.Fatalf("after %d s with two prompts of 700 tokens in each, %d tokens wait", second,
				e.lines.prefilling)
		}
		for i := range uint64(2) {
			e.add(uint64(second)*2+i+1, 700, 10_000, false)
		}
		for range 20 {
			e.iterate()
		}
	}
	// 20 tokens a second, one second less for each line that its second began
	if got := e.job.ages.tokens; got < 20*2*57*58/2*95/100 {
		t.Errorf("the ages of %d lines sum up to %d tokens, want %d", e.job.ages.lines, got,
			20*2*57*58/2)
	}
	for e.lines.settle(e.now); e.lines.prefilling > 0; {
		at := e.lines.next
		if !at.After(e.now) || at.Sub(e.now) > time.Second {
			t.Fatalf("the next prompt is computed in %v", at.Sub(e.now))
		}
		e.now = at
		if l := e.lines.settle(at); l == nil {
			t.Fatalf("none is computed then")
		}
	}
}

// Readings that show nothing new change nothing.
func TestReadingsThatShowNothingNew(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(before, r *flowcontrol.Reading)
		want   int // prompt tokens that wait
	}{
		{"a good one", func(_, _ *flowcontrol.Reading) {}, 0},
		{"frozen", func(before, r *flowcontrol.Reading) {
			at := r.Sampled
			*r = *before
			r.Waiting, r.Sampled = 0, at
		}, 300},
		{"of the same time", func(before, r *flowcontrol.Reading) {
			r.Sampled = before.Sampled
		}, 300},
		{"older", func(before, r *flowcontrol.Reading) {
			r.Sampled = before.Sampled.Add(-time.Second)
		}, 300},
		{"late by a minute", func(_, r *flowcontrol.Reading) {
			r.Sampled = r.Sampled.Add(-time.Minute)
		}, 300},
		{"after a restart", func(_, r *flowcontrol.Reading) { r.OutputTokens = 3 }, 300},
		{"without Waiting", func(_, r *flowcontrol.Reading) { r.Waiting = math.NaN() }, 300},
		{"without counters", func(_, r *flowcontrol.Reading) {
			r.PromptTokens, r.OutputTokens = math.NaN(), math.NaN()
			r.TokenGaps, r.TokenGapTime = math.NaN(), math.NaN()
		}, 300},
		{"without a gap", func(before, r *flowcontrol.Reading) {
			r.TokenGaps, r.TokenGapTime = before.TokenGaps, before.TokenGapTime
		}, 0},
		{"all wait", func(_, r *flowcontrol.Reading) { r.Waiting = 3 }, 300},
		{"one waits", func(_, r *flowcontrol.Reading) { r.Waiting = 1 }, 100},
		{"fewer run than were sent", func(_, r *flowcontrol.Reading) { r.Running = 2 }, 100},
	} {
		var u inFlightLines
		j := &job{id: "j"}
		first := flowcontrol.NoReading(flowcontrol.Metrics, noon.Add(-11*time.Second))
		first.Running, first.Waiting, first.PromptTokens, first.OutputTokens = 3, 3, 1000, 99
		first.TokenGaps, first.TokenGapTime = 50, 2
		u.read(first.Sampled, &first)
		before := first
		before.Sampled, before.OutputTokens = noon.Add(-10*time.Second), 100
		u.read(before.Sampled, &before)
		for i := range uint64(3) {
			u.add(noon.Add(-20*time.Second), &Start{number: i + 1, job: j, line: line{prompt: 100}})
		}
		r := before
		r.Sampled, r.Waiting, r.OutputTokens = noon, 0, 110
		r.TokenGaps, r.TokenGapTime = 60, 2.4
		test.change(&before, &r)
		u.read(noon, &r)
		u.settle(noon.Add(time.Second))
		if u.prefilling != test.want {
			t.Errorf("%s: %d prompt tokens wait, want %d", test.name, u.prefilling, test.want)
		}
	}
}

// A line that is streamed shows itself when its prompt is computed, and that those after it are
// not.
func TestStreamsAreMoreExactThanMetrics(t *testing.T) {
	e := &testEngine{lines: &inFlightLines{}, job: &job{id: "j"}, now: noon, slots: 200,
		budget: 512, iteration: 50 * time.Millisecond}
	e.lines.streams = true // from earlier lines
	e.add(1, 100, 10_000, false)
	e.add(2, 100, 10_000, true)
	e.add(3, 100, 10_000, false)
	for range 5 {
		for range 20 {
			e.iterate()
		}
		e.lines.read(e.now, e.reading())
		e.lines.settle(e.now)
	}
	if e.lines.prefilling != 200 {
		t.Errorf("%d prompt tokens wait before a token of the second line, want 200",
			e.lines.prefilling)
	}
	e.lines.firstToken(e.now, 2)
	if e.lines.settle(e.now); e.lines.prefilling != 0 {
		t.Errorf("%d prompt tokens wait after it, want 0", e.lines.prefilling)
	}
}

// A runner that does not stream is read like one that was not asked to.
func TestStreamsThatBringNoTokens(t *testing.T) {
	e := &testEngine{lines: &inFlightLines{}, job: &job{id: "j"}, now: noon, slots: 200,
		budget: 512, iteration: 50 * time.Millisecond}
	second := func() {
		for range 20 {
			e.iterate()
		}
		e.lines.read(e.now, e.reading())
		e.lines.settle(e.now.Add(time.Second))
	}
	for i := range uint64(4) {
		e.add(i+1, 100, 10_000, true)
	}
	e.lines.firstToken(e.now, 1)
	second()
	second()
	if e.lines.prefilling != 300 {
		t.Errorf("%d prompt tokens wait, want those of 3 streams without a token",
			e.lines.prefilling)
	}
	e.lines.succeeded(e.now, 2)
	e.lines.remove(2)
	if second(); e.lines.prefilling != 0 {
		t.Errorf("%d prompt tokens wait after an answer without tokens before, want none",
			e.lines.prefilling)
	}
}

// readAt reads counters of an engine that has as many gaps as given, of 50 ms each.
func readAt(u *inFlightLines, now, sampled time.Time, gaps float64) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, sampled)
	r.TokenGaps, r.TokenGapTime = gaps, gaps/20
	u.read(now, &r)
}

// Metrics count the iterations that no stream reports.
func TestAgesByMetrics(t *testing.T) {
	second := func(s float64) time.Time { return noon.Add(seconds(s)) }
	for _, test := range []struct {
		name        string
		run         func(u *inFlightLines)
		least, most int64
	}{
		{"the stream is silent", func(u *inFlightLines) {
			u.streamed = 1
			for i := range 40 {
				at := second(float64(i) / 4)
				readAt(u, at, at, 10_000+float64(i)*50)
			}
		}, 170, 200},
		{"the stream reports", func(u *inFlightLines) {
			u.streamed = 1
			for i := range 40 {
				at := second(float64(i) / 4)
				u.tick(at, 5, GapsInterval)
				readAt(u, at.Add(time.Millisecond), at.Add(time.Millisecond), 10_000+float64(i)*50)
			}
		}, 195, 195},
		{"few gaps", func(u *inFlightLines) {
			readAt(u, second(1), second(1), 10_000)
			readAt(u, second(2), second(2), 10_010)
			readAt(u, second(3), second(3), 10_015)
		}, 5, 5},
		{"computed after the reading", func(u *inFlightLines) {
			readAt(u, second(1), second(1), 10_000)
			u.lines[0].computedAt = second(5)
			readAt(u, second(6), second(4), 12_000)
			readAt(u, second(7), second(6), 13_000)
			readAt(u, second(7), second(7), 14_000)
		}, 15, 40},
	} {
		u, j := inFlightLines{}, &job{id: "j"}
		u.add(noon, &Start{number: 1, job: j})
		u.answered(noon, 1)
		test.run(&u)
		if got := j.ages.tokens; got < test.least || got > test.most {
			t.Errorf("%s: %d tokens, want %d to %d", test.name, got, test.least, test.most)
		}
	}
}

// A line of an earlier life of its runner shows nothing of the runner's cache.
func TestMetricsWarmNoFormerLife(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.metered["r1"] = true
	w.runnerUp("r1", "m")
	w.put(Batch{ID: "b", Created: noon, MaxConcurrency: 1}, map[string][]int{"m": {8}})
	w.load(0, 100_000)
	w.runnerGone("r1")
	w.runnerUp("r1", "m")
	w.put(Batch{ID: "c", Created: noon}, map[string][]int{"m": {8}})
	w.load(len(w.claims)-1, 100_000)
	w.now = w.now.Add(time.Second)
	for i := range 3 {
		r := flowcontrol.NoReading(flowcontrol.Metrics, w.now)
		r.Waiting, r.OutputTokens = 0, float64(i)
		w.step(Reading{Runner: "r1", Reading: &r})
		w.now = w.now.Add(100 * time.Millisecond)
	}
	if r := w.planner.runners["r1"]; r.lines.prefilling != 100_000 {
		t.Errorf("%d prompt tokens wait, want those of the line of this life", r.lines.prefilling)
	}
	if len(w.planner.jobs["b/m"].cached.warm) != 0 {
		t.Error("a prompt of an earlier life shows the cache of this one warm")
	}
}

// Without streams and metrics, prompts are taken for computed one after another, after a time that
// is long. That is no sign of life, and no line has an age by it.
func TestPromptsOfAnEngineThatShowsNothing(t *testing.T) {
	u, j := inFlightLines{}, &job{id: "j"}
	for i := range uint64(2) {
		u.add(noon, &Start{number: i + 1, job: j, line: line{prompt: plausiblePrefill}})
	}
	for _, step := range []struct {
		at         time.Duration
		prefilling int
		next       time.Duration
	}{
		{0, 2 * plausiblePrefill, blindTime + time.Second},
		{blindTime, 2 * plausiblePrefill, blindTime + time.Second},
		{blindTime + time.Second, plausiblePrefill, blindTime + 2*time.Second},
		{blindTime + 2*time.Second, 0, 0},
	} {
		if l := u.settle(noon.Add(step.at)); l != nil {
			t.Errorf("after %v line %d is shown to be computed", step.at, l.number)
		}
		next := time.Duration(0)
		if !u.next.IsZero() {
			next = u.next.Sub(noon)
		}
		if u.prefilling != step.prefilling || next != step.next {
			t.Errorf("after %v %d tokens wait and the next after %v, want %d and %v", step.at,
				u.prefilling, next, step.prefilling, step.next)
		}
	}
	u.advance(10)
	if u.advance(10); j.ages != (ages{}) {
		t.Errorf("lines of which nothing is known have the ages %+v", j.ages)
	}
	u.answered(noon.Add(5*time.Second), 1)
	if u.prefilling != 0 || !u.lines[0].certain() || u.lines[1].certain() {
		t.Errorf("after an answer %d tokens wait, lines are certain: %v and %v", u.prefilling,
			u.lines[0].certain(), u.lines[1].certain())
	}
	u.add(noon, &Start{number: 3, job: j, line: line{prompt: plausiblePrefill}})
	u.answered(noon.Add(9*time.Second), 2)
	if u.settle(noon.Add(9 * time.Second)); !u.next.Equal(noon.Add(10 * time.Second)) {
		t.Errorf("after the prompt before was computed, the next is after %v", u.next.Sub(noon))
	}
}

// Prompts of a runner that shows nothing hold starts back for some seconds, not until an answer.
func TestStartsOnAnEngineThatShowsNothing(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.Policy = "variable"
	flow = flow.With(fixed.Name, fixed.Config{PerRunner: 20})
	flow.Engine.MaxBatchedTokens = 1 // so each prompt fills what may wait
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m": {20}})
	w.load(0, 400)
	for _, want := range []int{1, 2, 3, 4} {
		if len(w.requests) != want {
			t.Fatalf("after %v %d lines were started, want %d", w.now.Sub(noon), len(w.requests),
				want)
		}
		w.pass(blindTime + 100*time.Millisecond)
	}
}

// Lines that were sent shortly after nobody waited are admitted when they arrive; those sent while
// requests wait are not, until a sample shows them inside.
func TestLinesSentAfterASample(t *testing.T) {
	sent := noon.Add(time.Second)
	for _, test := range []struct {
		name       string
		waiting    float64
		after      time.Duration // from the sample
		prefilling int
	}{
		{"nobody waited", 0, 1200 * time.Millisecond, 100},
		{"nobody waited, and there was time", 0, 1300 * time.Millisecond, 0},
		{"one waited", 1, 20 * time.Second, 100},
		{"nothing is known of those that wait", math.NaN(), 1300 * time.Millisecond, 100},
		{"nothing is known, and there was time", math.NaN(), 4 * time.Second, 0},
	} {
		var u inFlightLines
		r := flowcontrol.NoReading(flowcontrol.Metrics, noon.Add(-time.Second))
		r.OutputTokens = 1
		u.read(r.Sampled, &r)
		r.Sampled, r.OutputTokens, r.Waiting = noon, 2, test.waiting
		u.read(noon, &r)
		u.add(sent, &Start{number: 1, job: &job{id: "j"}, line: line{prompt: 100}})
		u.settle(noon.Add(test.after))
		if u.prefilling != test.prefilling {
			t.Errorf("%s: after %v %d tokens wait, want %d", test.name, test.after, u.prefilling,
				test.prefilling)
		}
	}
}

// The gaps between tokens are the times of iterations.
func TestIterationsAreMeasured(t *testing.T) {
	var u inFlightLines
	if u.iteration() != plausibleIteration {
		t.Errorf("unknown iterations take %v", u.iteration())
	}
	readAt(&u, noon, noon, 1000)
	readAt(&u, noon.Add(time.Second), noon.Add(time.Second), 1100)
	if u.iteration() != 50*time.Millisecond {
		t.Errorf("iterations take %v by metrics, want 50ms", u.iteration())
	}
	u.tick(noon.Add(2*time.Second), 4, 120*time.Millisecond)
	if u.iteration() != 30*time.Millisecond {
		t.Errorf("iterations take %v by streams, want 30ms", u.iteration())
	}
	if u.detach(); u.iteration() != plausibleIteration {
		t.Errorf("iterations of a runner that is gone take %v", u.iteration())
	}
}

// The cost model of an engine sets how long a prompt takes.
func TestPrefillByTheCostModel(t *testing.T) {
	p := prefill{flowcontrol.Engine{MaxBatchedTokens: 512,
		CostModel: costmodel.Model{C0: 33, C1: 0.1, C2: 0.1}}}
	// 0.2 ms each, and 33 ms for each 512 of them
	if got, want := p.took(1000, 500), 172*time.Millisecond; got.Round(
		time.Millisecond) != want.Round(time.Millisecond) {
		t.Errorf("500 tokens take %v, want %v", got, want)
	}
	if got := (prefill{}).took(1000, plausiblePrefill); got != time.Second {
		t.Errorf("on an unknown engine %d tokens take %v, want 1s", plausiblePrefill, got)
	}
}
