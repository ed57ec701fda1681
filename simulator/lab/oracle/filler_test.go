package oracle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// smallPool is a pool that a test can simulate many times.
func smallPool(t *testing.T, kind string, change func(*scenario.Scenario)) simulator.Setup {
	t.Helper()
	profile, ok := engine.ProfileNamed("llama-70b-a100")
	if !ok {
		t.Fatal("no such profile")
	}
	s := scenario.Default()
	s.Name, s.Horizon = "small", 10*time.Minute
	s.Pool.Profile, s.Pool.Replicas, s.Pool.ShedAbove = profile.Name, 2, 5
	s.Interactive.Generator, s.Interactive.Rate = "conversation", 1.8
	s.Jobs = []scenario.Job{{Name: "backlog", Kind: kind}}
	if change != nil {
		change(&s)
	}
	return simulator.Setup{Scenario: s, Profile: profile, Seed: 1}
}

func runNoBatch(t *testing.T, s simulator.Setup) simulator.NoBatch {
	t.Helper()
	q, err := simulator.RunNoBatch(s, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// newTestFiller has a backlog of bal lines and an hour.
func newTestFiller(t *testing.T, kind string, pacing Pacing) *lineFiller {
	t.Helper()
	s := smallPool(t, kind, func(s *scenario.Scenario) { s.Horizon = time.Hour })
	lines, err := newBacklog(s)
	if err != nil {
		t.Fatal(err)
	}
	return &lineFiller{
		pacing: pacing, model: s.Profile.CostModel, slo: func(engine.ID) scenario.SLO {
			return s.Scenario.Interactive.SLO
		}, epoch: simulator.Epoch(), backlog: lines,
		pace: 50 * time.Millisecond, cached: map[engine.Hash]bool{},
	}
}

// An iteration takes no longer than it may, and holds no more than there is room for.
func TestFillerKeepsToItsLimits(t *testing.T) {
	for _, kind := range []string{"bal", "gen", "score", "score-shared", "mix"} {
		s := newTestFiller(t, kind, Pacing{0.9, 0, 90})
		now := simulator.Epoch()
		for i := range 3000 {
			free := engine.Scheduled{Tokens: 12, Context: 9000, Pace: 1, FreeTokens: 500,
				FreeSeqs: 240, FreeKV: 400_000}
			switch i % 9 { // now and then something else than time is short
			case 0:
				free.FreeKV = 1000
			case 3:
				free.FreeSeqs = 7
			case 6:
				free.FreeTokens = 40
			}
			late := time.Duration(1+i%6) * time.Second
			free.Streams = []engine.Stream{{Submitted: now, FirstToken: now.Add(-late), Prompt: 700,
				Output: 101, Produced: 20}}
			f := s.Fill(now, &free)
			tokens, prefill := free.Tokens+f.Decoding, 0.0
			held := f.Context
			for k, c := range f.Chunks {
				tokens += c.Tokens
				prefill += s.model.Prefill(c)
				held += s.chunkLines[k].prompt
			}
			ms := s.model.Iteration(float64(tokens), float64(free.Context+f.Context), prefill)
			if limit := s.limit(now, &free); ms > limit+0.001 && f.Decoding+len(f.Chunks) > 0 {
				t.Fatalf("%s, iteration %d takes %.2f ms, may take %.2f", kind, i, ms, limit)
			}
			if tokens-free.Tokens > free.FreeTokens || f.Decoding+len(f.Chunks) > free.FreeSeqs ||
				held > free.FreeKV {
				t.Fatalf("%s, iteration %d: %+v does not fit into %+v", kind, i, f, free)
			}
			now = now.Add(time.Duration(ms * float64(time.Millisecond)))
			s.Filled(now)
		}
		if s.backlog.finished == 0 {
			t.Errorf("%s: no line was finished", kind)
		}
	}
}

func TestFillerGivesWhatTheMostUrgentStreamCanSpare(t *testing.T) {
	s := newTestFiller(t, "bal", Pacing{1, 0, 1000})
	now := simulator.Epoch()
	stream := func(output, produced int, ago time.Duration) engine.Stream {
		return engine.Stream{FirstToken: now.Add(-ago), Prompt: 100, Output: output,
			Produced: produced, Uncomputed: 1}
	}
	each := 100 - 0.05 // what the server takes for a token is not the engine's to spend
	for _, test := range []struct {
		name    string
		streams []engine.Stream
		want    float64
	}{
		{"no streams", nil, 1000},
		{"new", []engine.Stream{stream(101, 1, 0)}, each},
		{"ahead", []engine.Stream{stream(101, 51, 3*time.Second)}, (100*each - 3000) / 50},
		{"behind", []engine.Stream{stream(101, 51, 6*time.Second)}, (100*each - 6000) / 50},
		{"the least", []engine.Stream{stream(101, 51, 3*time.Second),
			stream(101, 51, 6*time.Second)}, (100*each - 6000) / 50},
		{"past saving", []engine.Stream{stream(101, 51, 9*time.Second), stream(101, 1, 0)}, each},
		{"only one token", []engine.Stream{stream(1, 0, 0)}, 1000},
	} {
		it := engine.Scheduled{Tokens: 10, FreeTokens: 502, Streams: test.streams}
		if got := s.limit(now, &it); cmp.Diff(got, test.want) != "" && (got < test.want-0.001 ||
			got > test.want+0.001) {
			t.Errorf("%s: %.3f ms, want %.3f", test.name, got, test.want)
		}
	}
	// A prompt of three iterations that has waited for a second and a half.
	it := engine.Scheduled{Tokens: 12, FreeTokens: 500,
		Streams: []engine.Stream{{Submitted: now.Add(-1500 * time.Millisecond), Prompt: 1400,
			Output: 10, Uncomputed: 1400}}}
	if got, want := s.limit(now, &it), (500-16.05)/3; got < want-0.01 || got > want+0.01 {
		t.Errorf("a prompt in a hurry: %.2f ms, want %.2f", got, want)
	}
}

func TestBacklogTakesEarliestDeadlineThatFits(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) {
		s.Jobs = []scenario.Job{
			{Name: "later", Kind: "score", Lines: 2, Window: 9 * time.Minute},
			{Name: "sooner", Kind: "score", Lines: 1, Window: 5 * time.Minute},
			{Name: "later job", Kind: "score", At: time.Minute, Lines: 1, Window: time.Minute},
			{Name: "long", Kind: "gen", Lines: 100},
		}
	})
	b, err := newBacklog(s)
	if err != nil {
		t.Fatal(err)
	}
	remaining := func() (left []int) {
		for _, j := range b.jobs {
			left = append(left, j.Lines-j.next+len(j.skipped))
		}
		return left
	}
	const pace = 50 * time.Millisecond
	for _, step := range []struct {
		now  time.Duration
		left []int // later, sooner, long, later job
	}{
		{0, []int{2, 0, 100, 1}}, {time.Second, []int{1, 0, 100, 1}},
		{time.Minute, []int{1, 0, 100, 0}}, {time.Minute, []int{0, 0, 100, 0}},
		{time.Minute, []int{0, 0, 99, 0}},
	} {
		if b.take(step.now, pace) == nil {
			t.Fatalf("at %v: nothing, want a line", step.now)
		}
		if diff := cmp.Diff(step.left, remaining()); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", step.now, diff)
		}
	}
	end := s.Scenario.Horizon
	if l := b.take(end-time.Second, pace); l != nil && time.Duration(l.output)*pace > time.Second {
		t.Errorf("a second before the end: a line of %d tokens", l.output)
	}
	if b.take(end, pace) != nil {
		t.Error("a line at the end")
	}
}

// E harvests more than any cap that costs as little, for every kind of line, and gives the same
// twice.
func TestEngineBeatsFixedCaps(t *testing.T) {
	for _, kind := range []string{"bal", "gen", "score", "mix"} {
		s := smallPool(t, kind, nil)
		noBatch := runNoBatch(t, s)
		found, err := Engine(s, noBatch, Budget{Runs: 8})
		if err != nil {
			t.Fatal(err)
		}
		bound := found.Bound
		if bound.Name != "E" || bound.Useful == 0 || bound.Work == 0 || bound.Loss > MaxLoss ||
			bound.Note == "" {
			t.Errorf("%s: %+v", kind, bound)
		}
		if kind == "bal" {
			if again, err := Engine(s, noBatch, Budget{Runs: 8}); err != nil ||
				!cmp.Equal(again, found) {
				t.Errorf("again: %+v, %v, want %+v", again, err, found)
			}
		}
		for _, lines := range []int{1, 4, 16, 32, 64} {
			r := policyRun(t, s, noBatch, func(p *simulator.Policy) {
				p.Flow = p.Flow.Select(fixed.Name, fixed.Config{PerRunner: lines})
			})
			if bound.BeatenBy(float64(r.Batch.Useful), r.Loss) {
				t.Errorf("%s: %d lines harvest %d at %.2f points, the bound is %.0f at %.2f", kind,
					lines, r.Batch.Useful, r.Loss, bound.Useful, bound.Loss)
			}
		}
	}
}

// Without a prefix cache, shared prompts cost E as much as they cost the engines, so it stays below
// the fluid bound.
func TestEngineWithoutAPrefixCacheComputesSharedPrompts(t *testing.T) {
	s := smallPool(t, "score-shared", func(s *scenario.Scenario) {
		s.Horizon, s.Pool.PrefixCaching = 5*time.Minute, false
	})
	found, err := Engine(s, runNoBatch(t, s), Budget{Runs: 6})
	if err != nil {
		t.Fatal(err)
	}
	fluid, err := Fluid(s)
	if err != nil {
		t.Fatal(err)
	}
	if e := found.Bound.Useful; e == 0 || e > 1.05*fluid.Useful {
		t.Errorf("E harvests %.0f tokens, the fluid bound is %.0f", e, fluid.Useful)
	}
}

func TestEngineKeepsItsBudget(t *testing.T) {
	s := smallPool(t, "score", func(s *scenario.Scenario) { s.Horizon = 3 * time.Minute })
	var shares []float64
	if _, err := Engine(s, runNoBatch(t, s), Budget{Runs: 3, Progress: func(share float64) error {
		shares = append(shares, share)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if want := []float64{1. / 3, 2. / 3, 1}; !cmp.Equal(shares, want) {
		t.Errorf("got %v, want %v", shares, want)
	}
}
