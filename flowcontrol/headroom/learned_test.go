package headroom

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

// lived returns what is learned in some minutes of a pool that carries about 350 lines.
func lived(t testing.TB, change func(*flowcontrol.Config)) (learned []byte, carried int) {
	t.Helper()
	p := flowcontroltest.NewLivePool(newPolicy(t, change))
	p.Run(5*time.Minute, nil)
	return p.Controller.(policy).Learned(p.Now), p.InFlight()
}

func newPolicy(t testing.TB, change func(*flowcontrol.Config)) policy {
	t.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.SLO.TTFT, cfg.SLO.TPOT = 2*time.Second, 100*time.Millisecond
	cfg.Engine.MaxSeqs, cfg.Engine.MaxBatchedTokens = 256, 2048
	if change != nil {
		change(&cfg)
	}
	c, err := flowcontrol.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c.(policy)
}

// A restarted pool has its lines back sooner than a new one has its first, and never more.
func TestLinesReturn(t *testing.T) {
	learned, carried := lived(t, nil)
	c := newPolicy(t, nil)
	if err := c.Learn(noon, learned, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	p := flowcontroltest.NewLivePool(c)
	p.Run(900*time.Millisecond, nil)
	if p.InFlight() > 0 {
		t.Errorf("%d lines before a reading", p.InFlight())
	}
	p.Run(5*time.Second, nil)
	if p.InFlight() > carried/4 {
		t.Errorf("%d lines after six seconds, %d before", p.InFlight(), carried)
	}
	p.Run(24*time.Second, func() {
		if p.InFlight() > carried {
			t.Fatalf("%d lines, %d before", p.InFlight(), carried)
		}
	})
	if p.InFlight() < carried*9/10 {
		t.Errorf("%d lines after half a minute, %d before", p.InFlight(), carried)
	}
}

// A pool that does not show what it showed before is watched as a new one.
func TestUnseenPoolIsNew(t *testing.T) {
	learned, _ := lived(t, nil)
	c := newPolicy(t, nil)
	if err := c.Learn(noon, learned, 0); err != nil {
		t.Fatal(err)
	}
	c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	for at := time.Duration(0); at < resumeWait; at += time.Second {
		if a := c.Allowance(noon.Add(at)); a.Runners[0].Lines > 0 {
			t.Fatalf("%+v after %v without a reading", a.Runners[0], at)
		}
	}
	c.Allowance(noon.Add(resumeWait + tick))
	if c.resume.pending != nil || c.fit.factor != [3]float64{1, 1, 1} {
		t.Errorf("taken over: %+v, fit %v", c.resume, c.fit.factor)
	}
}

// A spent budget of late requests is not forgiven by a restart.
func TestSpentBudgetSurvives(t *testing.T) {
	p := flowcontroltest.NewLivePool(newPolicy(t, nil))
	p.Run(5*time.Minute, nil)
	c := p.Controller.(policy)
	c.budget.read(p.Now, 1000, 500)
	if c.budget.left() > 0 {
		t.Fatalf("%v of the budget left", c.budget.left())
	}
	again := newPolicy(t, nil)
	if err := again.Learn(noon, c.Learned(p.Now), time.Minute); err != nil {
		t.Fatal(err)
	}
	q := flowcontroltest.NewLivePool(again)
	q.Run(30*time.Second, nil)
	if q.Started > 0 || again.budget.left() > 0 {
		t.Errorf("%d lines started, %v of the budget left", q.Started, again.budget.left())
	}
}

// With another objective only what is known of the engines and of lines is of use.
func TestOtherSettings(t *testing.T) {
	known := func(cfg *flowcontrol.Config) {
		cfg.Engine.CostModel.C0, cfg.Engine.CostModel.C1, cfg.Engine.CostModel.P1 = 40, 0.1, 0.05
	}
	learned, _ := lived(t, known)
	for name, test := range map[string]struct {
		change      func(*flowcontrol.Config)
		fit, loaded bool
	}{
		"the same": {known, true, true},
		"other objectives": {func(c *flowcontrol.Config) {
			known(c)
			c.SLO.TPOT *= 2
		}, true, false},
		"another engine": {nil, false, false},
	} {
		c := newPolicy(t, test.change)
		if err := c.Learn(noon, learned, 0); err != nil {
			t.Fatal(err)
		}
		c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
		c.takeOver(noon.Add(time.Second))
		if fit := c.fit.factor != [3]float64{1, 1, 1}; fit != test.fit {
			t.Errorf("%s: fit %v", name, c.fit.factor)
		}
		if loaded := c.first.alone.total > 0 && c.watched; loaded != test.loaded {
			t.Errorf("%s: %v first tokens, watched %v", name, c.first.alone.total, c.watched)
		}
		if c.sizes.prompt == 0 || c.alone.iteration.mean() == 0 {
			t.Errorf("%s: sizes %+v, alone %v", name, c.sizes, c.alone.iteration)
		}
	}
}

func TestRefusedStates(t *testing.T) {
	learned, _ := lived(t, nil)
	text := string(learned)
	for want, damaged := range map[string]string{
		"it is damaged: unexpected end": text[:len(text)/2],
		"it is damaged: a figure":       strings.Replace(text, `"known":`, `"known":-`, 1),
		"it has version 9": strings.Replace(text, `"version":1`,
			`"version":9`, 1),
		"at most 262144": text + strings.Repeat(" ", flowcontrol.MaxLearned),
	} {
		if err := newPolicy(t, nil).Learn(noon, []byte(damaged), 0); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzLearn hands over any text.
func FuzzLearn(f *testing.F) {
	learned, _ := lived(f, nil)
	f.Add(learned, uint64(0))
	f.Add([]byte("{}"), uint64(10))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		flowcontroltest.CheckLearned(t, flowcontroltest.Limits{PerRunner: 512},
			flowcontrol.NeedsOf(Name), func() flowcontrol.Controller { return newPolicy(t, nil) },
			text, seed%100_000)
	})
}

// Each part of a state counts for as long as what it is about stays as it is.
func TestOldStates(t *testing.T) {
	learned, carried := lived(t, nil)
	type left struct{ lines, firstTokens, quiet, fit float64 }
	after := func(age time.Duration) left {
		c := newPolicy(t, nil)
		if err := c.Learn(noon, learned, age); err != nil {
			t.Fatal(err)
		}
		c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
		if c.resume.pending != nil {
			c.takeOver(noon)
		}
		return left{c.resume.lines, c.first.alone.total, c.quiet.times.count(),
			c.fit.factor[0] - 1}
	}
	young := after(0)
	if !near(2*young.lines, float64(carried)) || young.firstTokens == 0 || young.quiet == 0 ||
		young.fit == 0 {
		t.Fatalf("taken over at once: %+v of %d lines", young, carried)
	}
	for _, test := range []struct {
		age  time.Duration
		want left // shares
	}{
		{5 * time.Minute, left{0.5, 0.89, 0.99, 1}},
		{10 * time.Minute, left{0.25, 0.79, 0.98, 1}},
		{30 * time.Minute, left{1. / 64, 0.5, 0.944, 1}},
		{6 * time.Hour, left{0, 0, 0.5, 0.976}},
		{7 * 24 * time.Hour, left{0, 0, 0, 0.5}},
	} {
		got := after(test.age)
		for _, part := range []struct {
			name             string
			got, young, want float64
		}{
			{"lines", got.lines, young.lines, test.want.lines},
			{"first tokens", got.firstTokens, young.firstTokens, test.want.firstTokens},
			{"quiet", got.quiet, young.quiet, test.want.quiet},
			{"fit", got.fit, young.fit, test.want.fit},
		} {
			if off := part.got/part.young - part.want; off > 0.01 || off < -0.01 {
				t.Errorf("after %v, %s count %.3f times, want %.3f", test.age, part.name,
					part.got/part.young, part.want)
			}
		}
	}
}
