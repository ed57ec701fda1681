package headroom_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

// testModel is near the cost model of a 70B model on four A100.
var testModel = costmodel.Model{C0: 33, C1: 0.15, KV: 5e-5, P1: 0.04}

func config() flowcontrol.Config {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = headroom.Name
	cfg.SLO.TTFT, cfg.SLO.TPOT = 2*time.Second, 100*time.Millisecond
	cfg.Engine = flowcontrol.Engine{CostModel: testModel, KVTokens: 400_000, MaxSeqs: 256,
		MaxBatchedTokens: 512}
	return cfg
}

// own is the policy's part of a configuration.
func own(cfg flowcontrol.Config) headroom.Config {
	return flowcontrol.OwnConfig[headroom.Config](cfg, headroom.Name)
}

// set changes the policy's part of a configuration.
func set(cfg *flowcontrol.Config, change func(*headroom.Config)) {
	own := own(*cfg)
	change(&own)
	*cfg = cfg.With(headroom.Name, own)
}

func newController(t testing.TB, cfg flowcontrol.Config) flowcontrol.Controller {
	t.Helper()
	c, err := flowcontrol.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var noon = flowcontroltest.Noon

// Iterations keep to the target, whatever is known of the engine.
func TestIterationsKeepToTheTarget(t *testing.T) {
	wrong := testModel
	wrong.C0, wrong.P1, wrong.KV = 0.6*wrong.C0, 2*wrong.P1, 2*wrong.KV
	for name, change := range map[string]func(*flowcontrol.Config, *engine){
		"all known":          func(*flowcontrol.Config, *engine) {},
		"a wrong cost model": func(c *flowcontrol.Config, _ *engine) { c.Engine.CostModel = wrong },
		"no cost model": func(c *flowcontrol.Config, _ *engine) {
			c.Engine = flowcontrol.Engine{}
		},
		"no metrics": func(_ *flowcontrol.Config, s *engine) { s.noMetrics = true },
		"long prompts": func(c *flowcontrol.Config, s *engine) {
			s.prompt, s.output = 1000, 30
			set(c, func(c *headroom.Config) { c.Tuning.LateByPrompts = 1000 })
		},
		"long answers": func(c *flowcontrol.Config, s *engine) {
			c.Engine.MaxSeqs = 1024
			s.prompt, s.output = 20, 1000
		},
		"no cost model, no metrics": func(c *flowcontrol.Config, s *engine) {
			c.Engine, s.noMetrics = flowcontrol.Engine{}, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, trial := config(), &engine{}
			change(&cfg, trial)
			s := newEngine(t, cfg)
			change(&cfg, s)
			// Where nothing is known, the first late requests keep lines low for some minutes.
			s.run(30 * time.Minute)
			if got, want := s.average(t, 5*time.Minute); math.Abs(got/want-1) > 0.1 {
				t.Errorf("iterations take %.1f ms with %d lines, the target is %.1f ms", got, len(
					s.lines), want)
			}
		})
	}
}

// More interactive requests leave fewer lines, and the lines recover when the requests end.
func TestLinesYieldToInteractiveRequests(t *testing.T) {
	s := newEngine(t, config())
	s.run(4 * time.Minute)
	before := len(s.lines)
	// They come so slowly that none is late: that would lower the lines for half an hour.
	for range 30 {
		s.interactive++
		s.promptRate += 50
		s.run(6 * time.Second)
	}
	s.run(time.Minute)
	if during := len(s.lines); during > before/2 {
		t.Errorf("%d lines before, %d beside three times the requests", before, during)
	}
	s.interactive, s.promptRate = 15, 900
	s.run(5 * time.Minute)
	if after := len(s.lines); after < before*3/4 {
		t.Errorf("%d lines before, %d after", before, after)
	}
}

// Interactive requests keep their sequences and their part of the KV cache, whatever the latency
// permits.
func TestAllowanceStaysSafe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := config()
		cfg.Engine.MaxSeqs = rapid.IntRange(8, 200).Draw(rt, "sequences")
		cfg.Engine.KVTokens = rapid.IntRange(10_000, 400_000).Draw(rt, "kv")
		s := newEngine(t, cfg)
		s.kvTokens = float64(cfg.Engine.KVTokens)
		s.prompt, s.output = rapid.IntRange(10, 3000).Draw(rt, "prompt"),
			rapid.IntRange(2, 500).Draw(rt, "output")
		s.interactive = float64(rapid.IntRange(0, 6).Draw(rt, "interactive"))
		s.run(2 * time.Minute)
		slots := cfg.Engine.MaxSeqs - int(s.interactive)
		free := own(cfg).Tuning.Reserve.KVUsed*s.kvTokens - s.interactive*interactiveContext
		// What interactive requests hold is an estimate, for which a third more is reserved.
		kv := 1.05 * max(0, free) / float64(s.prompt+s.output/2)
		// Allowances are computed again after a second.
		var safe [time.Second / moment]float64
		for i := range 100 {
			s.step()
			g := s.granted()
			safe[i%len(safe)] = s.term(t, "safe lines")
			if g.Lines > slots || float64(g.Lines) > kv ||
				i >= len(safe) && float64(g.Lines) > slices.Max(safe[:]) {
				rt.Fatalf("%+v, but %d sequences are free, KV cache for %.1f lines, %v were safe",
					g, slots, kv, safe)
			}
			if g.Reason == flowcontrol.ReasonNone {
				rt.Fatal("no reason")
			}
		}
	})
}

// After the same run, a reading with more interactive requests never grants more lines, but for one
// that a mean may be rounded by: sequences and KV cache are reserved for all but a share of the
// requests, and a reading with more of them counts more. What requests show over time is another
// matter: the more are in time, the more is known to be safe.
func TestMoreRequestsNeverGrantMoreLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := config()
		cfg.Engine.MaxSeqs = rapid.IntRange(20, 120).Draw(rt, "sequences")
		// The cost model stays as it is: this is not about what it learns.
		set(&cfg, func(c *headroom.Config) { c.Tuning.Fit.MaxCorrection = 1 })
		one, other := newController(t, cfg), newController(t, cfg)
		now := noon
		more := rapid.Float64Range(0, 40).Draw(rt, "more")
		feed := func(o flowcontrol.Observation) {
			one.Observe(now, o)
			if read, ok := o.(*flowcontrol.Read); ok {
				r := *read.Reading
				o = &flowcontrol.Read{Runner: read.Runner, Reading: &r}
			}
			other.Observe(now, o)
		}
		read := func(lines int) flowcontrol.Reading {
			r := flowcontrol.NoReading(flowcontrol.Metrics, now)
			r.Running, r.KVUsed, r.Waiting = float64(lines+rapid.IntRange(0, 20).Draw(
				rt, "running")), rapid.Float64Range(0, 0.6).Draw(rt, "kv"), 0
			return r
		}
		feed(&flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
		now = now.Add(2 * time.Minute) // a new pool is watched until enough requests were seen
		lines := 0
		gaps := func() {
			now = now.Add(300 * time.Millisecond)
			gap := time.Duration(rapid.IntRange(30, 120).Draw(rt, "gap")) * time.Millisecond
			feed(&flowcontrol.TokenGaps{Load: flowcontrol.Load{Runner: "r", InFlight: lines},
				Gaps: 4, Time: 4 * gap})
		}
		for range rapid.IntRange(20, 200).Draw(rt, "moments") {
			gaps()
			if lines < other.Allowance(now).Runners[0].Lines {
				lines++
				feed(&flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: lines},
					PromptTokens: 300})
			}
			if rapid.IntRange(0, 9).Draw(rt, "read") == 0 {
				r := read(lines)
				feed(&flowcontrol.Read{Runner: "r", Reading: &r})
			}
		}
		less := read(lines)
		greater := less
		greater.Running += more
		greater.KVUsed = min(1, greater.KVUsed+more/400)
		one.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &less})
		other.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &greater})
		for range 10 {
			a, b := one.Allowance(now).Runners[0], other.Allowance(now).Runners[0]
			if b.Lines > a.Lines+1 {
				rt.Fatalf("%+v, beside %v requests more %+v", a, more, b)
			}
			gaps()
		}
	})
}

// A source that hangs shows nothing, whether it repeats its time or only its values.
func TestReadingsThatDoNotChangeAreIgnored(t *testing.T) {
	s := newEngine(t, config())
	s.run(5 * time.Minute)
	s.noMetrics = true
	r := s.reading()
	s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &r})
	for _, restamped := range []bool{false, true} {
		s.run(3 * time.Second)
		repeated := r
		if restamped {
			repeated.Sampled = s.now
		}
		before := s.Allowance(s.now)
		before.Runners = slices.Clone(before.Runners)
		if s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &repeated}) {
			t.Errorf("restamped %v: a reading that repeats another one changes something",
				restamped)
		}
		if after := s.Allowance(s.now); !reflect.DeepEqual(before, after) {
			t.Errorf("restamped %v: %+v, after the repeated reading %+v", restamped, before, after)
		}
	}
}

// Counters that restart or are absent count neither as late requests nor as zero.
func TestGapsInCountersAreSkipped(t *testing.T) {
	s := newEngine(t, config())
	s.run(5 * time.Minute)
	share, running := s.term(t, flowcontrol.TermTargetShare), s.term(t, "interactive running")
	nan := math.NaN()
	for i, counted := range [][2]float64{{nan, nan}, {3, 3}, {nan, 3}, {2, 2}} {
		a := flowcontrol.Attainment{Requests: counted[0], Late: counted[1]}
		g := flowcontrol.NoReading(flowcontrol.Gateway,
			s.now.Add(time.Duration(i+1)*time.Millisecond))
		g.TPOT, g.TTFT = a, a
		s.Observe(s.now, &flowcontrol.Read{Reading: &g})
	}
	if got := s.term(t, flowcontrol.TermTargetShare); got != share {
		t.Errorf("the target share went from %v to %v", share, got)
	}
	empty := flowcontrol.NoReading(flowcontrol.Metrics, s.now)
	s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &empty})
	if got := s.term(t, "interactive running"); got != running {
		t.Errorf("%v requests, absent %v", running, got)
	}
}

// An engine that no longer shows its load is not as full as it was when it last did.
func TestLoadThatIsNoLongerShownIsUnknown(t *testing.T) {
	nan := math.NaN()
	for _, shown := range []bool{false, true} { // whether readings without gauges come
		s := newEngine(t, config())
		s.run(5 * time.Minute)
		s.noMetrics = true
		read := func(running, waiting, kv float64) {
			s.run(time.Second)
			r := s.reading()
			r.Running, r.Waiting, r.KVUsed = running, waiting, kv
			s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &r})
		}
		for range 300 { // all sequences, until the lines have ended
			read(256+float64(len(s.lines)), 0, 0.9)
		}
		full := s.granted()
		most := 0
		for range 75 { // until the state is stale, which permits one line
			if most = max(most, s.granted().Lines); shown {
				read(nan, nan, nan)
			} else {
				s.run(time.Second)
			}
		}
		if full.Lines > 0 || (most > 0) != shown {
			t.Errorf("readings without gauges %v: %+v of a full engine, later at most %d lines",
				shown, full, most)
		}
	}
}

func TestOwnLoadIsSubtracted(t *testing.T) {
	s := newEngine(t, config())
	s.run(10 * time.Minute)
	if got := s.term(t, "interactive running"); math.Abs(got-15) > 2 {
		t.Errorf("got %.1f interactive requests beside %d lines, want 15", got,
			len(s.lines))
	}
	if got := s.term(t, "interactive prompts"); math.Abs(got-900) > 200 {
		t.Errorf("got %.0f interactive prompt tokens a second, want 900", got)
	}
}

func TestSilenceShrinksTheAllowance(t *testing.T) {
	cfg := config()
	s := newEngine(t, cfg)
	s.run(2 * time.Minute) // so few lines that nothing is late when prompts are not paced
	good := s.granted().Lines
	s.silent = true
	s.run(own(cfg).Tuning.Staleness.AgingAfter + 2*time.Second)
	aging := s.granted()
	if aging.Reason != headroom.ReasonAging && aging.Lines > good {
		t.Errorf("%+v, was %d: nothing may grow during silence", aging, good)
	}
	s.run(10 * time.Minute)
	least := max(1, int(own(cfg).Tuning.Staleness.MinShare*float64(good)+1))
	if got := s.granted(); got.Lines > least || got.Lines < 1 ||
		got.Reason != headroom.ReasonStale {
		t.Errorf("%+v after ten minutes of silence, want stale with 1 to %d lines of %d", got,
			least, good)
	}
	s.silent = false
	s.run(10 * time.Minute)
	if got := s.granted().Lines; got < good*3/4 {
		t.Errorf("%d lines ten minutes after, were %d", got, good)
	}
	for range own(cfg).Tuning.Staleness.BrokenLines {
		s.Observe(s.now, &flowcontrol.Broken{Load: flowcontrol.Load{Runner: "r"}})
	}
	s.now = s.now.Add(2 * time.Second)
	if got := s.granted(); got.Lines != 0 || got.Reason != headroom.ReasonUnreachable {
		t.Errorf("%+v after %d broken lines, want unreachable", got,
			own(cfg).Tuning.Staleness.BrokenLines)
	}
	s.now = s.now.Add(own(cfg).Tuning.Staleness.Retry)
	if got := s.granted(); got.Lines != 1 {
		t.Errorf("%+v, want one line to try", got)
	}
}

func TestOthersLateRequestsDoNotCount(t *testing.T) {
	c := newController(t, config())
	s := &engine{Controller: c, now: noon}
	c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
	for i := range 60 { // nothing of ours runs, and every request is late
		s.now = s.now.Add(5 * time.Second)
		g := flowcontrol.NoReading(flowcontrol.Gateway, s.now)
		g.TPOT = flowcontrol.Attainment{Requests: float64(100 * i), Late: float64(100 * i)}
		g.TTFT = g.TPOT
		c.Observe(s.now, &flowcontrol.Read{Reading: &g})
	}
	if got, start := s.term(t, flowcontrol.TermTargetShare),
		own(config()).Tuning.TargetShare.Start; got != start {
		t.Errorf("the target share is %v, was %v", got, start)
	}
}

func TestBrakeEvictsLines(t *testing.T) {
	s := newEngine(t, config())
	s.prompt, s.output = 20, 1000
	s.run(10 * time.Minute)
	before := len(s.lines)
	s.interactive, s.promptRate = 60, 3400
	s.run(15 * time.Second)
	if got := len(s.lines); got > before/2 {
		t.Errorf("%d lines before the surge, %d after 15 s of it: they live for a minute, and the "+
			"brake did not evict them", before, got)
	}
}

// An engine that preempts, or soon will, carries too much, whatever was expected to fit.
func TestLinesAreEvictedFromAFullKVCache(t *testing.T) {
	for name, fill := range map[string]func(*flowcontrol.Reading){
		"full":     func(r *flowcontrol.Reading) { r.KVUsed = 0.97 },
		"preempts": func(r *flowcontrol.Reading) { r.KVUsed, r.Preemptions = 0.5, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newEngine(t, config())
			s.run(10 * time.Minute)
			s.noMetrics = true
			r := s.reading()
			r.Preemptions = 0
			s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &r})
			s.run(time.Second)
			before := len(s.lines)
			r = s.reading()
			r.Preemptions = 0
			fill(&r)
			s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &r})
			if g := s.granted(); g.Lines >= before || !g.Evict ||
				g.Reason != headroom.ReasonKV {
				t.Errorf("%+v beside %d lines, want fewer, the youngest evicted", g, before)
			}
			s.run(10 * time.Second)
			if got := len(s.lines); got >= before {
				t.Errorf("%d lines ten seconds after, were %d", got, before)
			}
		})
	}
}

// In a pool without interactive requests, as many lines run as the engine holds.
func TestLinesFillAPoolThatIsNotShared(t *testing.T) {
	lines := func(shared bool) int {
		cfg := config()
		cfg.SLO.TPOT = 50 * time.Millisecond // which some lines alone take
		cfg.Shared = shared
		s := newEngine(t, cfg)
		s.interactive, s.promptRate = 0, 0
		s.prompt, s.output = 50, 1000
		s.run(20 * time.Minute)
		return len(s.lines)
	}
	most := config().Engine.MaxSeqs // less what metrics seem to show of others
	if shared, alone := lines(true), lines(false); alone < most*19/20 || alone > most ||
		shared > most/2 {
		t.Errorf("%d lines in a shared pool, %d in one that is not, of %d", shared, alone, most)
	}
}

func TestExplainChangesNothing(t *testing.T) {
	cfg := config()
	one, other := newEngine(t, cfg), newEngine(t, cfg)
	for range 400 {
		one.step()
		other.step()
		one.Controller.(flowcontrol.Explainer).Explain(one.now)
		a, b := one.Allowance(one.now), other.Allowance(other.now)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("explained: %+v, not explained: %+v", a, b)
		}
	}
}

// A pool that is scaled to zero can be explained too.
func TestExplainWithoutRunners(t *testing.T) {
	s := newEngine(t, config())
	for range 400 {
		s.step()
	}
	for _, r := range s.Allowance(s.now).Runners {
		s.Observe(s.now, &flowcontrol.RunnerLeft{Runner: r.Runner})
	}
	for _, term := range s.Controller.(flowcontrol.Explainer).Explain(s.now) {
		if math.IsNaN(term.Value) {
			t.Errorf("%s is %v", term.Name, term.Value)
		}
	}
}

// A job of long lines after one of prompts starts with what is known of long lines, though
// iterations with prompts made nothing late.
func TestAnotherKindOfJobStartsLow(t *testing.T) {
	s := newEngine(t, config())
	s.prompt, s.output = 700, 5
	s.run(20 * time.Minute)
	prompts := s.term(t, "target iteration")
	s.prompt, s.output = 50, 1500
	s.run(20 * time.Second) // few lines have ended
	// The target share is of the time that iterations take beyond those without batch lines.
	alone := s.term(t, "alone")
	if lines := s.term(t, "target iteration"); lines-alone > 0.8*(prompts-alone) {
		t.Errorf("the target is %.1f ms with long lines, was %.1f ms with prompts, alone %.1f ms",
			lines, prompts, alone)
	}
	longest := 0.0
	for range 240 {
		s.run(time.Second)
		longest = max(longest, s.felt)
	}
	if longest > 100 {
		t.Errorf("iterations took up to %.1f ms, longer than was promised", longest)
	}
}

// A runner that may carry nothing for an hour does not keep the others from carrying more.
func TestHeldRunnersDoNotLimitOthers(t *testing.T) {
	cfg := config()
	cfg.Engine.KVTokens = 0 // which would limit lines of runners that show no metrics
	c := newController(t, cfg)
	runners := []string{"a", "b", "held"}
	carried := map[string]int{}
	on := func(runner string) flowcontrol.Load {
		return flowcontrol.Load{Runner: runner, InFlight: carried[runner]}
	}
	for _, r := range runners {
		c.Observe(noon, &flowcontrol.RunnerJoined{Load: on(r)})
	}
	c.Observe(noon, &flowcontrol.Shed{Load: on("held"), RetryAfter: time.Hour})
	for second := range 120 {
		now := noon.Add(time.Duration(second) * time.Second)
		if second%5 == 0 { // its metrics continue, so it is not stale
			m := flowcontrol.NoReading(flowcontrol.Metrics, now)
			m.Running, m.OutputTokens = 0, float64(second)
			c.Observe(now, &flowcontrol.Read{Runner: "held", Reading: &m})
		}
		for _, g := range slices.Clone(c.Allowance(now).Runners) {
			for carried[g.Runner] < g.Lines {
				carried[g.Runner]++
				c.Observe(now, &flowcontrol.Started{Load: on(g.Runner),
					PromptTokens: 20, OutputTokens: 2000})
				c.Observe(now, &flowcontrol.FirstToken{Load: on(g.Runner),
					PromptTokens: 20})
			}
			if carried[g.Runner] > 0 {
				c.Observe(now, &flowcontrol.TokenGaps{Load: on(g.Runner),
					Gaps: 25, Time: time.Second})
			}
		}
	}
	if carried["held"] > 0 || carried["a"] < 20 || carried["b"] < 20 {
		t.Errorf("lines: %v; only one runner is held", carried)
	}
}

// While the lines of a runner hold much more context than those of another, no more start there: a
// router that considers load would send interactive requests to the other.
func TestRunnersStayAlikeInContext(t *testing.T) {
	more := func(ratio float64) int {
		cfg := config()
		cfg.Engine.KVTokens = 0 // which would limit lines of runners that show no metrics
		set(&cfg, func(c *headroom.Config) { c.Tuning.Pace.MaxContextRatio = ratio })
		c := newController(t, cfg)
		carried := map[string]int{}
		now := noon
		on := func(runner string) flowcontrol.Load {
			return flowcontrol.Load{Runner: runner, InFlight: carried[runner]}
		}
		start := func(runner string) {
			carried[runner]++
			c.Observe(now, &flowcontrol.Started{Load: on(runner), PromptTokens: 20,
				OutputTokens: 6000})
			c.Observe(now, &flowcontrol.FirstToken{Load: on(runner),
				PromptTokens: 20})
		}
		for _, r := range []string{"old", "young"} {
			c.Observe(now, &flowcontrol.RunnerJoined{Load: on(r)})
		}
		for range 240 {
			now = now.Add(time.Second)
			for _, g := range slices.Clone(c.Allowance(now).Runners) {
				for carried[g.Runner] < g.Lines {
					start(g.Runner)
				}
				c.Observe(now, &flowcontrol.TokenGaps{Load: on(g.Runner), Gaps: 25,
					Time: time.Second})
			}
		}
		before := carried["young"]
		for range before {
			carried["young"]--
			c.Observe(now, &flowcontrol.Answered{Load: on("young"), PromptTokens: 20,
				OutputTokens: 6000})
		}
		for range before {
			start("young")
		}
		now = now.Add(time.Second)
		c.Allowance(now) // runners that were full are not any more, since lines were answered
		now = now.Add(time.Second)
		return c.Allowance(now).Runners[0].Lines - carried["old"]
	}
	if alike, apart := more(1.5), more(1000); alike > 0 || apart <= 0 {
		t.Errorf("%d more lines beside young ones, %d if context did not count", alike,
			apart)
	}
}

// The checks of the other tests detect each mistake.
func TestMistakesShow(t *testing.T) {
	grown := func(mistake flowcontroltest.Mistake, change func(*engine)) *engine {
		s := newEngine(t, config())
		if mistake != nil {
			c := mistake(newController(t, config()))
			c.Observe(s.now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
			s.Controller = c
		}
		s.run(10 * time.Minute)
		change(s)
		return s
	}
	var before float64 // target share
	for _, test := range []struct {
		name    string
		mistake flowcontroltest.Mistake
		change  func(*engine)
		measure func(*engine) float64 // more is worse
	}{
		{"sign flipped", flowcontroltest.SignFlipped(75 * time.Millisecond), func(*engine) {},
			func(s *engine) float64 {
				got, want := s.average(t, 5*time.Minute)
				return math.Abs(got/want-1) / 0.15
			}},
		{"staleness ignored", flowcontroltest.StalenessIgnored, func(s *engine) {
			for s.mean > s.term(t, "target iteration") {
				s.step() // to the last moment before the silence, in which more lines fit
			}
			s.silent = true
			s.run(2 * time.Minute)
		},
			func(s *engine) float64 { return float64(s.granted().Lines) / 20 }},
		{"deadlines above safety", flowcontroltest.DeadlinesAboveSafety, func(s *engine) {
			s.Observe(s.now, &flowcontrol.DeadlineDemand{Lines: 1000})
		}, func(s *engine) float64 { return float64(s.granted().Lines) / s.term(t, "safe lines") }},
		{"own load as interactive", flowcontroltest.OwnLoadAsInteractive, func(*engine) {},
			func(s *engine) float64 { return s.term(t, "interactive running") / 20 }},
		{"lateness hidden", flowcontroltest.LatenessHidden, func(s *engine) {
			before = s.term(t, flowcontrol.TermTargetShare)
			for range 30 {
				s.late.Late += 10
				s.late.Requests += 10
				s.run(5 * time.Second)
			}
		}, func(s *engine) float64 {
			return s.term(t, flowcontrol.TermTargetShare) / (0.9 * before)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sound := test.measure(grown(nil, test.change))
			faulty := test.measure(grown(test.mistake, test.change))
			if sound > 1 || faulty <= 1 {
				t.Errorf(
					"the measure is %.2f without the mistake and %.2f with it, want at most 1 "+
						"and more", sound, faulty)
			}
		})
	}
}

// Deadlines raise the lines of a runner that feedback keeps low, up to a share of the safe lines.
func TestDeadlinesRaiseLines(t *testing.T) {
	cfg := config()
	s := newEngine(t, cfg)
	s.interactive, s.promptRate = 60, 3400 // nothing left for batch lines
	s.run(5 * time.Minute)
	before := s.granted().Lines
	s.Observe(s.now, &flowcontrol.DeadlineDemand{Lines: 5})
	if got := s.granted().Lines; got != max(before, 5) {
		t.Errorf("%d lines, want the 5 that deadlines ask for, or the %d before", got, before)
	}
	s.Observe(s.now, &flowcontrol.DeadlineDemand{Lines: 1e9})
	if got, most := s.granted().Lines,
		int(own(cfg).Tuning.Deadlines.SafeShare*s.term(t, "safe lines")); got != max(before, most) {
		t.Errorf("%d lines for deadlines that can't be met, want %d", got, most)
	}
	s.Observe(s.now, &flowcontrol.DeadlineDemand{})
	if got := s.granted().Lines; got != before {
		t.Errorf("%d lines without demand of deadlines, were %d", got, before)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	tuning := func(change func(*headroom.Tuning)) func(*headroom.Config) {
		return func(c *headroom.Config) { change(&c.Tuning) }
	}
	flowcontroltest.TestFaults(t, headroom.DefaultConfig(), map[string]func(*headroom.Config){
		"per_runner: ": func(c *headroom.Config) { c.PerRunner = 0 },
		"streams: ":    func(c *headroom.Config) { c.Streams = "few" },
		"tuning.pace.gain: ": tuning(func(t *headroom.Tuning) {
			t.Pace.Gain = math.NaN()
		}),
		"tuning.target_share.start: ": tuning(func(t *headroom.Tuning) {
			t.TargetShare.Start = 3
		}),
		"tuning.target_share.max: ": tuning(func(t *headroom.Tuning) { t.TargetShare.Max = 3 }),
		"tuning.first_tokens: ":     tuning(func(t *headroom.Tuning) { t.FirstTokens = -1 }),
		"tuning.reserve.kv_used: ":  tuning(func(t *headroom.Tuning) { t.Reserve.KVUsed = 1.5 }),
	})
}

// BenchmarkController observes token gaps in a pool of a hundred runners.
func BenchmarkController(b *testing.B) {
	cfg := config()
	c, err := flowcontrol.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 100)
	now := noon
	for i := range names {
		names[i] = string([]byte{'r', byte('0' + i/10), byte('0' + i%10)})
		c.Observe(now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: names[i]}})
	}
	gaps := &flowcontrol.TokenGaps{Load: flowcontrol.Load{InFlight: 20}, Gaps: 4,
		Time: 240 * time.Millisecond}
	for i := 0; b.Loop(); i++ {
		now = now.Add(250 * time.Millisecond / time.Duration(len(names)))
		gaps.Runner = names[i%len(names)]
		c.Observe(now, gaps)
		c.Allowance(now)
	}
}
