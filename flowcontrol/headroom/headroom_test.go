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

// A law near that of a 70B model on four A100.
var testLaw = costmodel.Model{C0: 33, C1: 0.15, KV: 5e-5, P1: 0.04}

func probeConfig() flowcontrol.Config {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = headroom.Name
	cfg.Engine = flowcontrol.Engine{CostModel: testLaw, KVTokens: 400_000, MaxSeqs: 256,
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

// stream is a runner in slow motion: it knows how long an iteration takes from what it runs, and
// tells what a driver would see of it. Lines have all the same size and are always to be had.
type stream struct {
	flowcontrol.Controller
	now                     time.Time
	prompt, output          int
	interactive, promptRate float64 // requests that run, prompt tokens a second
	deaf, blind             bool    // no metrics; nothing at all is seen

	lines    []line
	queue    float64 // prompt tokens to compute
	produced float64
	computed float64
	late     flowcontrol.Attainment
	looked   time.Time
	mean     float64 // iteration of the last moment, milliseconds
	felt     float64 // the same over the last seconds, as a request feels it
	gaps     float64 // not told
}

type line struct{ waits, left float64 } // prompt tokens before its first token, output tokens

func newStream(t *testing.T, cfg flowcontrol.Config) *stream {
	s := &stream{Controller: newController(t, cfg), now: noon, prompt: 500, output: 200,
		interactive: 15, promptRate: 900}
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: "r"})
	return s
}

const moment = 250 * time.Millisecond

// run lets time pass.
func (s *stream) run(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.step()
	}
}

func (s *stream) tell(o flowcontrol.Observation) {
	o.Runner, o.InFlight, o.Prefilling = "r", len(s.lines), 0
	for _, l := range s.lines {
		if l.waits > 0 {
			o.Prefilling += s.prompt
		}
	}
	if !s.blind || o.Kind == flowcontrol.Started {
		s.Observe(s.now, o)
	}
}

func (s *stream) granted() flowcontrol.RunnerAllowance { return s.Allowance(s.now).Runners[0] }

func (s *stream) step() {
	s.now = s.now.Add(moment)
	ms := float64(moment / time.Millisecond)
	token := testLaw.PromptToken(0)
	decoding := testLaw.C0 + testLaw.C1*(s.interactive+float64(len(s.lines))) +
		testLaw.KV*float64(len(s.lines)*600)
	// Prompts of ours are computed in chunks, one an iteration; interactive ones all the time.
	const chunk = 512
	own := ms * (1 - s.promptRate/1000*token)
	full := min(s.queue/chunk, own/(decoding+chunk*token))
	prefill := full * chunk
	iterations := full + (own-full*(decoding+chunk*token))/decoding
	s.mean = ms / iterations
	s.queue -= prefill
	s.computed += prefill + s.promptRate/1000*ms
	s.produced += iterations * (s.interactive + float64(len(s.lines)))
	for i := range s.lines {
		if l := &s.lines[i]; l.waits > 0 {
			if l.waits -= prefill; l.waits <= 0 {
				s.tell(flowcontrol.Observation{
					Kind: flowcontrol.FirstToken, PromptTokens: s.prompt})
			}
		} else {
			l.left -= iterations
		}
	}
	before := len(s.lines)
	s.lines = slices.DeleteFunc(s.lines, func(l line) bool { return l.left <= 0 })
	for range before - len(s.lines) {
		s.tell(flowcontrol.Observation{Kind: flowcontrol.Answered, PromptTokens: s.prompt,
			OutputTokens: s.output, Latency: 20 * time.Second})
	}
	if s.gaps += iterations; len(s.lines) > 0 && s.gaps >= 1 {
		whole := math.Floor(s.gaps)
		s.tell(flowcontrol.Observation{Kind: flowcontrol.TokenGaps, Gaps: int(whole),
			GapTime: time.Duration(float64(moment) * whole / iterations)})
		s.gaps -= whole
	}
	s.felt += (s.mean - s.felt) / 20
	s.late.Requests += 5 * moment.Seconds()
	if s.felt > 100 {
		s.late.Late += 5 * moment.Seconds()
	}
	if s.now.Sub(s.looked) >= 5*time.Second {
		s.looked = s.now
		s.look()
	}
	g := s.granted()
	for g.Evict && len(s.lines) > g.Lines {
		s.lines = s.lines[:len(s.lines)-1]
		s.tell(flowcontrol.Observation{Kind: flowcontrol.Evicted, Latency: time.Second})
	}
	for len(s.lines) < g.Lines && int(s.queue) < g.Prompt {
		s.queue += float64(s.prompt)
		s.lines = append(s.lines, line{waits: s.queue, left: float64(s.output)})
		s.tell(flowcontrol.Observation{Kind: flowcontrol.Started, PromptTokens: s.prompt,
			OutputTokens: s.output})
		g = s.granted()
	}
}

// look tells what metrics and gateway show.
func (s *stream) look() {
	if s.blind {
		return
	}
	g := flowcontrol.NoReading(flowcontrol.Gateway, s.now)
	g.TPOT, g.TTFT = s.late, flowcontrol.Attainment{Requests: s.late.Requests}
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Reading: &g})
	if !s.deaf {
		r := s.reading()
		s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Runner: "r", Reading: &r})
	}
}

func (s *stream) reading() flowcontrol.Reading {
	r := flowcontrol.NoReading(flowcontrol.Metrics, s.now)
	r.Running, r.Waiting = s.interactive+float64(len(s.lines)), 0
	r.KVTokens, r.KVUsed = 400_000, (s.interactive*1000+float64(len(s.lines)*600))/400_000
	r.PromptTokens, r.CachedTokens, r.OutputTokens = s.computed, 0, s.produced
	return r
}

// average is the mean iteration over a time, and what it should have been.
func (s *stream) average(t *testing.T, d time.Duration) (got, want float64) {
	iterations, target, n := 0.0, 0.0, 0.0
	for end := s.now.Add(d); s.now.Before(end); n++ {
		s.step()
		iterations += float64(moment/time.Millisecond) / s.mean
		target += s.term(t, "target iteration")
	}
	return n * float64(moment/time.Millisecond) / iterations, target / n
}

// term is what the controller explains by a name.
func (s *stream) term(t *testing.T, name string) float64 {
	t.Helper()
	for _, term := range s.Controller.(flowcontrol.Explainer).Explain(s.now) {
		if term.Name == name {
			return term.Value
		}
	}
	t.Fatalf("no term %q", name)
	return 0
}

// Whatever is known of the engine, what runs on it is as much as the target lets run.
func TestProbeKeepsIterationsNearTheTarget(t *testing.T) {
	wrong := testLaw
	wrong.C0, wrong.P1, wrong.KV = 0.6*wrong.C0, 2*wrong.P1, 2*wrong.KV
	for name, change := range map[string]func(*flowcontrol.Config, *stream){
		"all known":   func(*flowcontrol.Config, *stream) {},
		"a wrong law": func(c *flowcontrol.Config, _ *stream) { c.Engine.CostModel = wrong },
		"no law": func(c *flowcontrol.Config, _ *stream) {
			c.Engine = flowcontrol.Engine{}
		},
		"no metrics": func(_ *flowcontrol.Config, s *stream) { s.deaf = true },
		"long prompts": func(_ *flowcontrol.Config, s *stream) {
			s.prompt, s.output = 1000, 30
		},
		"long answers": func(_ *flowcontrol.Config, s *stream) {
			s.prompt, s.output = 20, 1000
		},
		"no law, no metrics": func(c *flowcontrol.Config, s *stream) {
			c.Engine, s.deaf = flowcontrol.Engine{}, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, trial := probeConfig(), &stream{}
			change(&cfg, trial)
			s := newStream(t, cfg)
			change(&cfg, s)
			s.run(10 * time.Minute)
			if got, want := s.average(t, 5*time.Minute); math.Abs(got/want-1) > 0.1 {
				t.Errorf("iterations take %.1f ms with %d lines, the target is %.1f ms", got, len(
					s.lines), want)
			}
		})
	}
}

// When interactive requests come, lines make room; when they leave, lines come back.
func TestProbeYieldsToInteractiveRequests(t *testing.T) {
	s := newStream(t, probeConfig())
	s.run(10 * time.Minute)
	before := len(s.lines)
	s.interactive, s.promptRate = 45, 2400
	s.run(2 * time.Minute)
	if during := len(s.lines); during > before/2 {
		t.Errorf("%d lines before, %d beside three times the requests", before, during)
	}
	s.interactive, s.promptRate = 15, 900
	s.run(5 * time.Minute)
	if after := len(s.lines); after < before*3/4 {
		t.Errorf("%d lines before, %d after", before, after)
	}
}

func TestProbeStaysWithinItsCaps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := probeConfig()
		cfg.Engine.MaxSeqs = rapid.IntRange(8, 200).Draw(rt, "sequences")
		cfg.Engine.KVTokens = rapid.IntRange(5_000, 400_000).Draw(rt, "kv")
		s := newStream(t, cfg)
		s.prompt, s.output = rapid.IntRange(10, 3000).Draw(rt, "prompt"),
			rapid.IntRange(2, 500).Draw(rt, "output")
		s.interactive = float64(rapid.IntRange(0, 6).Draw(rt, "interactive"))
		s.run(2 * time.Minute)
		slots := max(1, cfg.Engine.MaxSeqs-int(math.Min(16, float64(cfg.Engine.MaxSeqs)/2)))
		for range 100 {
			s.step()
			g := s.granted()
			if g.Lines > slots || float64(g.Lines) > max(1, s.term(t, "safe lines")) {
				rt.Fatalf("%d lines are granted, %d sequences are free, %v safe", g.Lines, slots,
					s.term(t, "safe lines"))
			}
			if g.Reason == flowcontrol.ReasonNone {
				rt.Fatal("no reason")
			}
		}
	})
}

// The same day seen twice, the second time with more interactive requests in every reading, never
// grants more.
func TestProbeNeverGrantsMoreBesideMoreRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := probeConfig()
		cfg.Engine.MaxSeqs = rapid.IntRange(20, 120).Draw(rt, "sequences")
		// the law stays as it is: what it learns is not the question
		set(&cfg, func(c *headroom.Config) { c.Tuning.Fit.MaxCorrection = 1 })
		one, other := newController(t, cfg), newController(t, cfg)
		now := noon
		more := rapid.Float64Range(0, 40).Draw(rt, "more")
		feed := func(o flowcontrol.Observation, reading *flowcontrol.Reading) {
			for i, c := range []flowcontrol.Controller{one, other} {
				if reading != nil {
					r := *reading
					r.Running += float64(i) * more
					r.KVUsed = min(1, r.KVUsed+float64(i)*more/400)
					o.Reading = &r
				}
				c.Observe(now, o)
			}
		}
		feed(flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: "r"}, nil)
		lines := 0
		for range 200 {
			now = now.Add(300 * time.Millisecond)
			a, b := one.Allowance(now).Runners[0], other.Allowance(now).Runners[0]
			if b.Lines > a.Lines {
				rt.Fatalf("%+v, beside %v requests more %+v", a, more, b)
			}
			if lines < b.Lines {
				lines++
				feed(flowcontrol.Observation{
					Kind: flowcontrol.Started, Runner: "r", InFlight: lines, PromptTokens: 300},
					nil)
			}
			gap := time.Duration(rapid.IntRange(30, 120).Draw(rt, "gap")) * time.Millisecond
			feed(flowcontrol.Observation{Kind: flowcontrol.TokenGaps, Runner: "r", InFlight: lines,
				Gaps: 4, GapTime: 4 * gap}, nil)
			if rapid.IntRange(0, 9).Draw(rt, "read") == 0 {
				r := flowcontrol.NoReading(flowcontrol.Metrics, now)
				r.Running, r.KVUsed, r.Waiting = float64(lines+rapid.IntRange(0, 20).Draw(
					rt, "running")), rapid.Float64Range(0, 0.6).Draw(rt, "kv"), 0
				feed(flowcontrol.Observation{Kind: flowcontrol.Read, Runner: "r"}, &r)
			}
		}
	})
}

// A source that is stuck says nothing, whether it repeats its time or only its values.
func TestProbeIgnoresWhatDoesNotMove(t *testing.T) {
	s := newStream(t, probeConfig())
	s.run(5 * time.Minute)
	s.deaf = true
	r := s.reading()
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Runner: "r", Reading: &r})
	for _, lie := range []bool{false, true} {
		s.run(3 * time.Second)
		stuck := r
		if lie {
			stuck.Sampled = s.now
		}
		before := s.Allowance(s.now)
		before.Runners = slices.Clone(before.Runners)
		if s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read,
			Runner: "r", Reading: &stuck}) {
			t.Errorf("lying %v: a stuck reading changes something", lie)
		}
		if after := s.Allowance(s.now); !reflect.DeepEqual(before, after) {
			t.Errorf("lying %v: %+v, after a stuck reading %+v", lie, before, after)
		}
	}
}

// What restarts or is absent is neither charged nor taken for zero.
func TestProbeMakesNothingOfGapsInCounters(t *testing.T) {
	s := newStream(t, probeConfig())
	s.run(5 * time.Minute)
	theta, running := s.term(t, flowcontrol.TermTargetShare), s.term(t, "interactive running")
	nan := math.NaN()
	for i, counted := range [][2]float64{{nan, nan}, {3, 3}, {nan, 3}, {2, 2}} {
		a := flowcontrol.Attainment{Requests: counted[0], Late: counted[1]}
		g := flowcontrol.NoReading(flowcontrol.Gateway,
			s.now.Add(time.Duration(i+1)*time.Millisecond))
		g.TPOT, g.TTFT = a, a
		s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Reading: &g})
	}
	if got := s.term(t, flowcontrol.TermTargetShare); got != theta {
		t.Errorf("theta went from %v to %v", theta, got)
	}
	empty := flowcontrol.NoReading(flowcontrol.Metrics, s.now)
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Runner: "r", Reading: &empty})
	if got := s.term(t, "interactive running"); got != running {
		t.Errorf("%v requests, absent %v", running, got)
	}
}

func TestProbeSubtractsItself(t *testing.T) {
	s := newStream(t, probeConfig())
	s.run(10 * time.Minute)
	if got := s.term(t, "interactive running"); math.Abs(got-15) > 2 {
		t.Errorf("%.1f interactive requests are seen beside %d lines, there are 15", got,
			len(s.lines))
	}
	if got := s.term(t, "interactive prompts"); math.Abs(got-900) > 200 {
		t.Errorf("%.0f interactive prompt tokens a second are seen, there are 900", got)
	}
}

func TestProbeInTheDark(t *testing.T) {
	cfg := probeConfig()
	s := newStream(t, cfg)
	s.run(10 * time.Minute)
	good := s.granted().Lines
	s.blind = true
	s.run(own(cfg).Tuning.Staleness.AgingAfter + 2*time.Second)
	aging := s.granted()
	if aging.Reason != headroom.ReasonAging && aging.Lines > good {
		t.Errorf("%+v, was %d: nothing rises while nothing is seen", aging, good)
	}
	s.run(10 * time.Minute)
	blind := max(1, int(own(cfg).Tuning.Staleness.MinShare*float64(good)+1))
	if got := s.granted(); got.Lines > blind || got.Lines < 1 ||
		got.Reason != headroom.ReasonStale {
		t.Errorf("%+v after ten minutes of silence, want blind with 1 to %d lines of %d", got,
			blind, good)
	}
	s.blind = false
	s.run(10 * time.Minute)
	if got := s.granted().Lines; got < good*3/4 {
		t.Errorf("%d lines ten minutes after, were %d", got, good)
	}
	for range own(cfg).Tuning.Staleness.BrokenLines {
		s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Broken, Runner: "r"})
	}
	s.now = s.now.Add(2 * time.Second)
	if got := s.granted(); got.Lines != 0 || got.Reason != headroom.ReasonUnreachable {
		t.Errorf("%+v after %d broken lines, want dark", got, own(cfg).Tuning.Staleness.BrokenLines)
	}
	s.now = s.now.Add(own(cfg).Tuning.Staleness.Retry)
	if got := s.granted(); got.Lines != 1 {
		t.Errorf("%+v, want one line to try", got)
	}
}

func TestProbeDoesNotPayForOthers(t *testing.T) {
	c := newController(t, probeConfig())
	s := &stream{Controller: c, now: noon}
	c.Observe(noon, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: "r"})
	for i := range 60 { // nothing of ours runs, and every request is late
		s.now = s.now.Add(5 * time.Second)
		g := flowcontrol.NoReading(flowcontrol.Gateway, s.now)
		g.TPOT = flowcontrol.Attainment{Requests: float64(100 * i), Late: float64(100 * i)}
		g.TTFT = g.TPOT
		c.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.Read, Reading: &g})
	}
	if got, start := s.term(t, flowcontrol.TermTargetShare),
		own(probeConfig()).Tuning.TargetShare.Start; got != start {
		t.Errorf("theta is %v, was %v", got, start)
	}
}

func TestProbeBrakes(t *testing.T) {
	s := newStream(t, probeConfig())
	s.prompt, s.output = 20, 1000
	s.run(10 * time.Minute)
	before := len(s.lines)
	s.interactive, s.promptRate = 60, 3400
	s.run(15 * time.Second)
	if got := len(s.lines); got > before/2 {
		t.Errorf(
			"%d lines before the swell, %d after 15 s of it: they live for a minute and are not recalled", before, got)
	}
}

// An engine that preempts, or soon will, carries too much, whatever was thought to fit.
func TestProbeMakesRoomWhereKVIsFull(t *testing.T) {
	for name, fill := range map[string]func(*flowcontrol.Reading){
		"full":     func(r *flowcontrol.Reading) { r.KVUsed = 0.97 },
		"preempts": func(r *flowcontrol.Reading) { r.KVUsed, r.Preemptions = 0.5, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t, probeConfig())
			s.run(10 * time.Minute)
			s.deaf = true
			r := s.reading()
			r.Preemptions = 0
			s.Observe(s.now, flowcontrol.Observation{
				Kind: flowcontrol.Read, Runner: "r", Reading: &r})
			s.run(time.Second)
			before := len(s.lines)
			r = s.reading()
			r.Preemptions = 0
			fill(&r)
			s.Observe(s.now, flowcontrol.Observation{
				Kind: flowcontrol.Read, Runner: "r", Reading: &r})
			if g := s.granted(); g.Lines >= before || !g.Evict ||
				g.Reason != headroom.ReasonKV {
				t.Errorf("%+v beside %d lines, want fewer, the youngest recalled", g, before)
			}
			s.run(10 * time.Second)
			if got := len(s.lines); got >= before {
				t.Errorf("%d lines ten seconds after, were %d", got, before)
			}
		})
	}
}

// Where nobody waits for tokens, what the engine holds is what runs.
func TestProbeFillsWhatIsNotShared(t *testing.T) {
	lines := func(shared bool) int {
		cfg := probeConfig()
		cfg.SLO.TPOT = 50 * time.Millisecond // which some lines alone take
		cfg.Shared = shared
		s := newStream(t, cfg)
		s.interactive, s.promptRate = 0, 0
		s.prompt, s.output = 50, 1000
		s.run(20 * time.Minute)
		return len(s.lines)
	}
	most := probeConfig().Engine.MaxSeqs - own(probeConfig()).Tuning.Reserve.Sequences
	if shared, alone := lines(true), lines(false); alone < most-2 || alone > most ||
		shared > most/2 {
		t.Errorf("%d lines where users may come, %d where none do, of %d", shared, alone, most)
	}
}

func TestProbeExplainsWithoutConsequence(t *testing.T) {
	cfg := probeConfig()
	one, other := newStream(t, cfg), newStream(t, cfg)
	for range 400 {
		one.step()
		other.step()
		one.Controller.(flowcontrol.Explainer).Explain(one.now)
		a, b := one.Allowance(one.now), other.Allowance(other.now)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("asked why: %+v, not asked: %+v", a, b)
		}
	}
}

// A job of long lines after one of prompts begins with what is known of long lines, though
// iterations of prompts were never late.
func TestProbeBeginsAnotherKindWithCare(t *testing.T) {
	s := newStream(t, probeConfig())
	s.prompt, s.output = 700, 5
	s.run(20 * time.Minute)
	prompts := s.term(t, "target iteration")
	s.prompt, s.output = 50, 1500
	s.run(20 * time.Second) // hardly a line has ended
	if lines := s.term(t, "target iteration"); lines > 0.8*prompts {
		t.Errorf("the target is %.1f ms with long lines, was %.1f ms with prompts", lines, prompts)
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

// One runner that may carry nothing for an hour is no reason for the others to carry little.
func TestProbeDoesNotWaitForWhoMayNotCarry(t *testing.T) {
	c := newController(t, probeConfig())
	runners := []string{"a", "b", "shut"}
	carried := map[string]int{}
	tell := func(now time.Time, o flowcontrol.Observation) {
		o.InFlight = carried[o.Runner]
		c.Observe(now, o)
	}
	for _, r := range runners {
		tell(noon, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: r})
	}
	tell(noon, flowcontrol.Observation{Kind: flowcontrol.Shed,
		Runner: "shut", RetryAfter: time.Hour})
	for second := range 120 {
		now := noon.Add(time.Duration(second) * time.Second)
		if second%5 == 0 { // its metrics go on, so it is known well
			m := flowcontrol.NoReading(flowcontrol.Metrics, now)
			m.Running, m.OutputTokens = 0, float64(second)
			tell(now, flowcontrol.Observation{Kind: flowcontrol.Read, Runner: "shut", Reading: &m})
		}
		for _, g := range slices.Clone(c.Allowance(now).Runners) {
			for carried[g.Runner] < g.Lines {
				carried[g.Runner]++
				tell(now, flowcontrol.Observation{Kind: flowcontrol.Started, Runner: g.Runner,
					PromptTokens: 20, OutputTokens: 2000})
				tell(now, flowcontrol.Observation{Kind: flowcontrol.FirstToken, Runner: g.Runner,
					PromptTokens: 20})
			}
			if carried[g.Runner] > 0 {
				tell(now, flowcontrol.Observation{Kind: flowcontrol.TokenGaps, Runner: g.Runner,
					Gaps: 25, GapTime: time.Second})
			}
		}
	}
	if carried["shut"] > 0 || carried["a"] < 20 || carried["b"] < 20 {
		t.Errorf("lines: %v; only one was shut", carried)
	}
}

// While old lines of a runner hold much more than young ones elsewhere, no more start there: a
// router that looks at load would send interactive requests to the others.
func TestProbeKeepsRunnersAlikeInWhatTheyHold(t *testing.T) {
	room := func(held float64) int {
		cfg := probeConfig()
		set(&cfg, func(c *headroom.Config) { c.Tuning.Pace.MaxContextRatio = held })
		c := newController(t, cfg)
		carried := map[string]int{}
		now := noon
		tell := func(o flowcontrol.Observation) {
			o.InFlight = carried[o.Runner]
			c.Observe(now, o)
		}
		start := func(runner string) {
			carried[runner]++
			tell(flowcontrol.Observation{Kind: flowcontrol.Started, Runner: runner,
				PromptTokens: 20, OutputTokens: 2000})
			tell(flowcontrol.Observation{Kind: flowcontrol.FirstToken, Runner: runner,
				PromptTokens: 20})
		}
		for _, r := range []string{"old", "young"} {
			tell(flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: r})
		}
		for range 240 {
			now = now.Add(time.Second)
			for _, g := range slices.Clone(c.Allowance(now).Runners) {
				for carried[g.Runner] < g.Lines {
					start(g.Runner)
				}
				tell(flowcontrol.Observation{Kind: flowcontrol.TokenGaps, Runner: g.Runner,
					Gaps: 25, GapTime: time.Second})
			}
		}
		before := carried["young"]
		for range before {
			carried["young"]--
			tell(flowcontrol.Observation{Kind: flowcontrol.Answered,
				Runner: "young", PromptTokens: 20, OutputTokens: 2000})
		}
		for range before {
			start("young")
		}
		now = now.Add(time.Second)
		c.Allowance(now) // those that were full are not, since lines were answered
		now = now.Add(time.Second)
		return c.Allowance(now).Runners[0].Lines - carried["old"]
	}
	if alike, apart := room(1.5), room(1000); alike > 0 || apart <= 0 {
		t.Errorf("%d more lines beside young ones, %d if what they hold did not matter", alike,
			apart)
	}
}

// Where nothing is late, theta does not take an hour to find out.
func TestThetaLeapsWhileNothingIsLate(t *testing.T) {
	cfg := probeConfig()
	set(&cfg, func(c *headroom.Config) { c.Tuning.TargetShare.FastRise = 1 })
	slow, fast := newStream(t, cfg), newStream(t, probeConfig())
	slow.run(4 * time.Minute)
	fast.run(4 * time.Minute)
	start := own(probeConfig()).Tuning.TargetShare.Start
	if a, b := slow.term(t, "target share of prefill")/start-1,
		fast.term(t, "target share of prefill")/start-1; b < 2*a {
		t.Errorf("theta rose by %.3f, by %.3f without leaps", b, a)
	}
}

// The checks of the other tests detect each mistake.
func TestMistakesShow(t *testing.T) {
	grown := func(mistake flowcontroltest.Mistake, change func(*stream)) *stream {
		s := newStream(t, probeConfig())
		if mistake != nil {
			c := mistake(newController(t, probeConfig()))
			c.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: "r"})
			s.Controller = c
		}
		s.run(10 * time.Minute)
		change(s)
		return s
	}
	for _, test := range []struct {
		name    string
		mistake flowcontroltest.Mistake
		change  func(*stream)
		measure func(*stream) float64 // more is worse
	}{
		{"sign flipped", flowcontroltest.SignFlipped(75 * time.Millisecond), func(*stream) {},
			func(s *stream) float64 {
				got, want := s.average(t, 5*time.Minute)
				return math.Abs(got/want-1) / 0.15
			}},
		{"staleness ignored", flowcontroltest.StalenessIgnored, func(s *stream) {
			s.blind = true
			s.run(10 * time.Minute)
		},
			func(s *stream) float64 { return float64(s.granted().Lines) / 10 }},
		{"deadlines above safety", flowcontroltest.DeadlinesAboveSafety, func(s *stream) {
			s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.DeadlineDemand, Lines: 1000})
		}, func(s *stream) float64 { return float64(s.granted().Lines) / s.term(t, "safe lines") }},
		{"own load as interactive", flowcontroltest.OwnLoadAsInteractive, func(*stream) {},
			func(s *stream) float64 { return s.term(t, "interactive running") / 20 }},
		{"lateness hidden", flowcontroltest.LatenessHidden, func(s *stream) {
			for range 10 {
				s.late.Late += 10
				s.late.Requests += 10
				s.run(5 * time.Second)
			}
		}, func(s *stream) float64 { return s.term(t, flowcontrol.TermTargetShare) / 0.6 }},
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

// Deadlines raise the lines of a runner that feedback keeps low, to a share of what is safe.
func TestDeadlinesPress(t *testing.T) {
	cfg := probeConfig()
	s := newStream(t, cfg)
	s.interactive, s.promptRate = 60, 3400 // no room for us
	s.run(5 * time.Minute)
	before := s.granted().Lines
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.DeadlineDemand, Lines: 5})
	if got := s.granted().Lines; got != max(before, 5) {
		t.Errorf("%d lines, want the 5 that deadlines ask for, or the %d before", got, before)
	}
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.DeadlineDemand, Lines: 1e9})
	if got, most := s.granted().Lines,
		int(own(cfg).Tuning.Deadlines.SafeShare*s.term(t, "safe lines")); got != max(before, most) {
		t.Errorf("%d lines for deadlines that can't be met, want %d", got, most)
	}
	s.Observe(s.now, flowcontrol.Observation{Kind: flowcontrol.DeadlineDemand})
	if got := s.granted().Lines; got != before {
		t.Errorf("%d lines when nothing presses, were %d", got, before)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	tuning := func(change func(*headroom.Tuning)) func(*headroom.Config) {
		return func(c *headroom.Config) { change(&c.Tuning) }
	}
	flowcontroltest.TestFaults(t, headroom.DefaultConfig(), map[string]func(*headroom.Config){
		"start: ":      func(c *headroom.Config) { c.Start = 0 },
		"per_runner: ": func(c *headroom.Config) { c.PerRunner = 0 },
		"streams: ":    func(c *headroom.Config) { c.Streams = 0 },
		"tuning.pace.gain: ": tuning(func(t *headroom.Tuning) {
			t.Pace.Gain = math.NaN()
		}),
		"tuning.pace.max_credit: ": tuning(func(t *headroom.Tuning) { t.Pace.MaxCredit = 0 }),
		"tuning.target_share.start: ": tuning(func(t *headroom.Tuning) {
			t.TargetShare.Start = 3
		}),
		"tuning.prompt_tokens.min: ": tuning(func(t *headroom.Tuning) {
			t.PromptTokens.Min = 0
		}),
		"tuning.fit.max_correction: ": tuning(func(t *headroom.Tuning) {
			t.Fit.MaxCorrection = 0.5
		}),
		"tuning.reserve.kv_used: ": tuning(func(t *headroom.Tuning) { t.Reserve.KVUsed = 1.5 }),
		"tuning.brake.evict_share: ": tuning(func(t *headroom.Tuning) {
			t.Brake.EvictShare = -1
		}),
		"tuning.staleness.stale_after: ": tuning(func(t *headroom.Tuning) {
			t.Staleness.StaleAfter = time.Second
		}),
		"tuning.deadlines.target_factor: ": tuning(func(t *headroom.Tuning) {
			t.Deadlines.TargetFactor = 0.5
		}),
		"tuning.decrease: ": tuning(func(t *headroom.Tuning) { t.Decrease = 1 }),
	})
}

// A pool of a hundred runners, each with its tokens, first tokens, starts and answers.
func BenchmarkProbe(b *testing.B) {
	cfg := probeConfig()
	c, err := flowcontrol.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 100)
	now := noon
	for i := range names {
		names[i] = string([]byte{'r', byte('0' + i/10), byte('0' + i%10)})
		c.Observe(now, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: names[i]})
	}
	for i := 0; b.Loop(); i++ {
		now = now.Add(250 * time.Millisecond / time.Duration(len(names)))
		c.Observe(now, flowcontrol.Observation{
			Kind: flowcontrol.TokenGaps, Runner: names[i%len(names)], InFlight: 20, Gaps: 4,
			GapTime: 240 * time.Millisecond,
		})
		c.Allowance(now)
	}
}
