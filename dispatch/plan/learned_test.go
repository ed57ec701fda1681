package plan

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/scheduler"
)

// noting is a policy that notes what it is to take over.
type noting struct {
	flowcontrol.Controller
	text []byte
	age  time.Duration
}

func (*noting) Name() string               { return "noting" }
func (n *noting) Learned(time.Time) []byte { return []byte("learned") }
func (n *noting) Learn(_ time.Time, text []byte, age time.Duration) error {
	if n.text, n.age = text, age; string(text) == "damaged" {
		return errors.New("it is damaged")
	}
	return nil
}

func init() {
	flowcontrol.Register("noting", flowcontrol.Factory{
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			cfg.Policy = aimd.Name
			inner, err := flowcontrol.New(cfg)
			return &noting{Controller: inner}, err
		},
	})
}

func notingPlanner(t *testing.T) *Planner {
	t.Helper()
	deps := Deps{Scheduler: scheduler.DefaultConfig(), Flow: flowcontrol.DefaultConfig(),
		Random: rand.New(rand.NewPCG(1, 1))}
	deps.Flow.Policy = "noting"
	return newPlanner(t, DefaultConfig(), deps)
}

// What a planner has learned reaches the controller of the same pool, with its age.
func TestLearnedIsHandedOver(t *testing.T) {
	before := notingPlanner(t)
	before.Step(noon, RunnerUp{Runner: "r", Models: []string{"b", "a"}, Engine: "e"})
	before.outputs["a"] = &outputMean{mean: 70, seen: 100, longest: 90}
	learned := before.Learned(noon)
	if len(learned) != 1 {
		t.Fatalf("%d pools, want 1", len(learned))
	}
	after := notingPlanner(t)
	after.Step(noon, Recall{[]Recalled{{learned[0], time.Minute}}})
	after.Step(noon.Add(time.Second), RunnerUp{Runner: "r", Models: []string{"a", "b"},
		Engine: "e"})
	if n := after.pools[0].flow.(*noting); string(n.text) != "learned" ||
		n.age != time.Minute+time.Second {
		t.Errorf("handed over %q of %v ago", n.text, n.age)
	}
	if took := after.Pools()[0].TakenOver; took == nil || took.Refused != nil ||
		took.Age != time.Minute+time.Second {
		t.Errorf("status %+v", took)
	}
	if o := after.outputs["a"]; o == nil || o.mean != 70 || o.seen != 99 || o.longest != 90 {
		t.Errorf("answers %+v", o)
	}
}

func TestLearnedOfAnotherPool(t *testing.T) {
	known := Learned{Models: []string{"a", "b"}, Engines: []string{"e"}, Policy: "noting",
		Flow: []byte("x")}
	for name, test := range map[string]struct {
		change  func(*Learned)
		up      RunnerUp
		refused string // "": taken over; "-": nothing is known
	}{
		"other models": {up: RunnerUp{Models: []string{"a"}, Engine: "e"}, refused: "-"},
		"fewer models so far": {up: RunnerUp{Models: []string{"a"}, Engine: "e",
			Unlisted: true}},
		"fewer models of another engine": {up: RunnerUp{Models: []string{"a"}, Engine: "f",
			Unlisted: true}, refused: "-"},
		"another engine": {up: RunnerUp{Models: []string{"a", "b"}, Engine: "f"},
			refused: "other engines"},
		"another policy": {change: func(l *Learned) { l.Policy = "x" },
			up: RunnerUp{Models: []string{"a", "b"}, Engine: "e"}, refused: `policy "x"`},
		"damaged": {change: func(l *Learned) { l.Flow = []byte("damaged") },
			up: RunnerUp{Models: []string{"a", "b"}, Engine: "e"}, refused: "damaged"},
		"impossible answers": {change: func(l *Learned) {
			l.Answers = map[string]AnswerLengths{"a": {-1, 5, 0}, "b": {5, -5, 0}, "c": {5, 5, 5}}
		}, up: RunnerUp{Models: []string{"a", "b"}, Engine: "e"}},
	} {
		l := known
		if test.change != nil {
			test.change(&l)
		}
		p := notingPlanner(t)
		p.Step(noon, Recall{[]Recalled{{l, 0}}})
		test.up.Runner = "r"
		p.Step(noon, test.up)
		took := p.Pools()[0].TakenOver
		switch {
		case test.refused == "-":
			if took != nil {
				t.Errorf("%s: %+v", name, took)
			}
		case took == nil:
			t.Errorf("%s: nothing was known", name)
		case test.refused == "" && took.Refused != nil:
			t.Errorf("%s: refused: %v", name, took.Refused)
		case test.refused != "" && (took.Refused == nil ||
			!strings.Contains(took.Refused.Error(), test.refused)):
			t.Errorf("%s: %v, want %q", name, took.Refused, test.refused)
		}
		if len(p.outputs) > 0 {
			t.Errorf("%s: answers %+v", name, p.outputs)
		}
	}
}

// A pool takes over what was learned when a runner joins of which it was learned, but not once its
// lines run.
func TestKnownRunnerComesLater(t *testing.T) {
	l := Learned{Models: []string{"m"}, Engines: []string{"known"}, Policy: "noting",
		Flow: []byte("x")}
	for _, busy := range []bool{false, true} {
		p := notingPlanner(t)
		p.Step(noon, Recall{[]Recalled{{l, 0}}})
		p.Step(noon, RunnerUp{Runner: "new", Models: []string{"m"}})
		if busy {
			key := JobKey{"b", "m"}
			p.Step(noon, BatchPut{Batch{ID: "b", Models: []ModelLines{{Model: "m", Lines: 1}}}})
			if a := p.Step(noon, Loaded{Key: key, Lines: []Line{{}}}); len(a.Start) != 1 {
				t.Fatalf("%+v, want a start", a)
			}
		}
		p.Step(noon, RunnerUp{Runner: "known", Models: []string{"m"}})
		if taken := p.pools[0].flow.(*noting).text != nil; taken == busy {
			t.Errorf("lines run: %v, taken over: %v", busy, taken)
		}
	}
}

// A pool that is forgotten gets a new controller, which knows its runners and their lines.
func TestForget(t *testing.T) {
	p := notingPlanner(t)
	l := Learned{Models: []string{"m"}, Engines: []string{"r"}, Policy: "noting",
		Flow: []byte("x"), Answers: map[string]AnswerLengths{"m": {9, 9, 9}}}
	p.Step(noon, Recall{[]Recalled{{l, 0}}})
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	p.Step(noon, BatchPut{Batch{ID: "b", Models: []ModelLines{{Model: "m", Lines: 3}}}})
	a := p.Step(noon, Loaded{Key: JobKey{"b", "m"}, Lines: []Line{{Slot: 0}, {Slot: 1}}})
	p.Step(noon, Forget{Pool: "other"})
	old := p.pools[0].flow
	p.Step(noon, Forget{Pool: "m"})
	if p.pools[0].flow == old || p.pools[0].flow.(*noting).text != nil ||
		p.Pools()[0].TakenOver != nil || len(p.outputs) > 0 {
		t.Errorf("not forgotten: %+v, %v", p.Pools()[0].TakenOver, p.outputs)
	}
	if granted := p.pools[0].flow.Allowance(noon).Runners; len(granted) != 1 {
		t.Errorf("the new controller has runners %+v", granted)
	}
	for _, s := range a.Start {
		p.Step(noon, &Finished{Start: s, Outcome: Succeeded, Status: 200, OutputTokens: 1})
	}
	p.Step(noon, RunnerGone{Runner: "r"})
	p.pools = nil
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	if p.Pools()[0].TakenOver != nil {
		t.Error("a new pool takes over what was forgotten")
	}
}

// A batch that goes on after a restart is not one of which nothing is known.
func TestAnswersOfJobsAreHandedOver(t *testing.T) {
	before := notingPlanner(t)
	put := BatchPut{Batch{ID: "b", Models: []ModelLines{{Model: "m", Lines: 100}}}}
	before.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	before.Step(noon, put)
	lines := make([]Line, 100)
	for i := range lines {
		lines[i].Slot = i
	}
	a := before.Step(noon, Loaded{Key: JobKey{"b", "m"}, Lines: lines})
	for len(a.Start) > 0 && before.jobs["b/m"].output.seen < 60 {
		start := a.Start[0]
		a = before.Step(noon, &Finished{Start: start, Outcome: Succeeded, Status: 200,
			OutputTokens: 700})
	}
	want := before.expectOutput(before.jobs["b/m"], 0)
	after := notingPlanner(t)
	after.Step(noon, Recall{[]Recalled{{before.Learned(noon)[0], time.Hour}}})
	after.Step(noon, put)
	j := after.jobs["b/m"]
	if got := after.expectOutput(j, 0); !j.measured() || got < 0.8*want {
		t.Errorf("%v tokens are expected of a line, %v before", got, want)
	}
}
