package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// users drives a planner with interactive requests, in virtual time.
type users struct {
	t        *testing.T
	p        *Planner
	now      time.Time
	last     uint64
	admitted map[uint64]Admission
	refused  map[uint64]Refusal
	order    []uint64 // of admissions
	evicted  []Start
	started  []Start
}

func newUsers(t *testing.T, change func(*Config, *flowcontrol.Config)) *users {
	t.Helper()
	cfg, flow := DefaultConfig(), flowcontrol.DefaultConfig()
	cfg.Inline.Enabled = true
	flow.Policy = "unlimited"
	if change != nil {
		change(&cfg, &flow)
	}
	p, err := New(cfg, Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	return &users{t: t, p: p, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		admitted: map[uint64]Admission{}, refused: map[uint64]Refusal{}}
}

func (u *users) step(ev Event) {
	u.t.Helper()
	did := u.p.Step(u.now, ev)
	for _, a := range did.Admit {
		if _, twice := u.admitted[a.ID]; twice {
			u.t.Fatalf("request %d was admitted twice", a.ID)
		}
		u.admitted[a.ID] = a
		u.order = append(u.order, a.ID)
	}
	for _, r := range did.Refuse {
		if _, both := u.admitted[r.ID]; both {
			u.t.Fatalf("request %d was admitted and refused", r.ID)
		}
		if _, twice := u.refused[r.ID]; twice {
			u.t.Fatalf("request %d was refused twice", r.ID)
		}
		u.refused[r.ID] = r
	}
	u.evicted = append(u.evicted, did.Evict...)
	u.started = append(u.started, did.Start...)
}

func (u *users) up(runner string, models ...string) {
	u.step(RunnerUp{Runner: runner, Models: models})
}

// ask sends a request of a use case and returns its ID.
func (u *users) ask(class, useCase string, change ...func(*Request)) uint64 {
	u.t.Helper()
	u.last++
	r := &Request{ID: u.last, Flow: flows.Flow{Class: class, UseCase: useCase, Tenant: "t"},
		Model: "m", PromptTokens: 100, MaxTokens: 100, Streamed: true}
	for _, c := range change {
		c(r)
	}
	u.step(RequestCame{r})
	return u.last
}

func (u *users) end(id uint64, outcome Outcome, output int) {
	u.t.Helper()
	u.step(&RequestEnded{ID: id, Outcome: outcome, OutputTokens: output,
		Latency: time.Duration(output) * 20 * time.Millisecond})
}

// pass lets time pass, with the steps that the planner asks for.
func (u *users) pass(d time.Duration) {
	u.t.Helper()
	until := u.now.Add(d)
	for {
		wake := u.p.wake()
		if wake.IsZero() || wake.After(until) {
			break
		}
		if wake.After(u.now) {
			u.now = wake
		} else {
			u.now = u.now.Add(time.Millisecond)
		}
		u.step(Tick{})
	}
	u.now = until
	u.step(Tick{})
}

func placesOf(n int) func(*Config, *flowcontrol.Config) {
	return func(c *Config, _ *flowcontrol.Config) { c.Inline.MaxRunning = n }
}

func TestRequestsSpreadAndWaitForPlaces(t *testing.T) {
	u := newUsers(t, placesOf(2))
	u.up("a", "m")
	u.up("b", "m")
	for range 4 {
		u.ask(flows.Critical, "chat")
	}
	by := map[string]int{}
	for _, a := range u.admitted {
		by[a.Runner]++
	}
	if by["a"] != 2 || by["b"] != 2 {
		t.Fatalf("the runners got %v", by)
	}
	waits := u.ask(flows.Critical, "chat")
	if _, ok := u.admitted[waits]; ok {
		t.Fatal("a request started beyond the places")
	}
	u.pass(3 * time.Second)
	u.end(1, Succeeded, 10)
	if a := u.admitted[waits]; a.Waited != 3*time.Second || a.Why != AtLimit ||
		a.Runner != u.admitted[1].Runner {
		t.Errorf("the request got %+v", a)
	}
}

func TestRequestsAreRefused(t *testing.T) {
	u := newUsers(t, placesOf(1))
	if id := u.ask(flows.Critical, "chat"); u.refused[id].Why != NoRunner {
		t.Errorf("without a runner: %+v", u.refused[id])
	}
	u.up("a", "m")
	u.ask(flows.Critical, "chat")
	waits := u.ask(flows.Standard, "other")
	u.pass(19 * time.Second)
	if len(u.refused) != 1 {
		t.Fatalf("refused early: %v", u.refused)
	}
	u.pass(time.Second)
	if r := u.refused[waits]; r.Why != Waited || r.Waited != 20*time.Second || r.RetryAfter <= 0 {
		t.Errorf("after the longest wait: %+v", r)
	}
	flex := u.ask(flows.Flex, "other", func(r *Request) { r.Deadline = u.now.Add(time.Minute) })
	gone := u.ask(flows.Flex, "other")
	u.step(RequestLeft{gone})
	u.pass(time.Minute)
	if u.refused[flex].Why != Waited {
		t.Errorf("at its deadline: %+v", u.refused[flex])
	}
	if _, ok := u.refused[gone]; ok {
		t.Error("a request that was withdrawn was refused")
	}
	last := u.ask(flows.Critical, "chat")
	u.step(Drain{})
	if u.refused[last].Why != Draining {
		t.Errorf("while draining: %+v", u.refused[last])
	}
}

// Those that wait in all pools together leave connections free for others: each pool has a share.
func TestWaitingRequestsLeaveConnectionsFree(t *testing.T) {
	u := newUsers(t, func(c *Config, _ *flowcontrol.Config) {
		c.Inline.MaxRunning, c.Inline.MaxWaiting = 2, 20
	})
	u.up("a", "m")
	u.up("b", "n")
	for range 40 {
		u.ask(flows.Flex, "bulk")
	}
	if admitted, refused := len(u.admitted), len(u.refused); admitted != 2 || refused != 28 {
		t.Errorf("%d run and %d were refused of 40, want 2 and 28: 10 wait", admitted, refused)
	}
	if id := u.ask(flows.Critical, "chat"); u.refused[id].ID != 0 {
		t.Errorf("the first class was refused: %+v", u.refused[id])
	}
}

// Under overload the lowest class is turned away first, and the highest keeps its places.
func TestClassesUnderOverload(t *testing.T) {
	u := newUsers(t, func(c *Config, _ *flowcontrol.Config) {
		c.Inline.MaxRunning, c.Inline.Flows.MaxWaiting = 10, 20
	})
	u.up("a", "m")
	u.end(u.ask(flows.Critical, "chat"), Succeeded, 1) // it has been there lately
	for range 10 {
		u.ask(flows.Standard, "other")
	}
	if n := len(u.admitted) - 1; n != 8 {
		t.Fatalf("%d requests of the lower class run beside a reserve of 2 of 10", n)
	}
	for range 2 {
		if id := u.ask(flows.Critical, "chat"); u.admitted[id].ID == 0 {
			t.Error("a critical request waited although places are reserved")
		}
	}
	for range 40 {
		u.ask(flows.Flex, "bulk")
	}
	for range 40 {
		u.ask(flows.Critical, "chat")
	}
	classes := map[string]int{}
	for _, r := range u.refused {
		if r.Why != TooMany {
			t.Errorf("refused: %+v", r)
		}
	}
	u.p.pools[0].requests.Classes(func(name string, waiting, _ int) { classes[name] = waiting })
	if classes[flows.Critical] != 20 || classes[flows.Flex] != 0 || classes[flows.Standard] != 0 {
		t.Errorf("waiting: %v", classes)
	}
}

// Two use cases share the work of a class in proportion to their weights, whatever the sizes.
func TestUseCasesShareByWeight(t *testing.T) {
	u := newUsers(t, placesOf(8))
	u.up("a", "m")
	random := rand.New(rand.NewPCG(7, 7))
	work := map[string]float64{}
	size := map[uint64]int{}
	name := map[uint64]string{}
	weights := map[string]float64{"three": 3, "one": 1}
	ask := func(useCase string) {
		id := u.ask(flows.Standard, useCase, func(r *Request) {
			r.Flow.Weight, r.Deadline = weights[useCase], u.now.Add(time.Hour)
			r.MaxTokens = 0
		})
		name[id], size[id] = useCase, 1+random.IntN(400)
		if useCase == "one" {
			size[id] *= 3
		}
	}
	for range 50 {
		ask("three")
		ask("one")
	}
	for i := 0; i < 4000; i++ {
		id := u.order[i]
		u.now = u.now.Add(10 * time.Millisecond)
		u.end(id, Succeeded, size[id])
		if i > 500 {
			work[name[id]] += u.p.cfg.Cost.Work(100, float64(size[id]))
		}
		ask(name[id])
	}
	if ratio := work["three"] / work["one"]; ratio < 2.85 || ratio > 3.15 {
		t.Errorf("the use cases got work in a ratio of %.3f, want 3", ratio)
	}
}

// Lines that hold the places of requests are evicted, and requests start when they are gone.
func TestLinesYieldToRequests(t *testing.T) {
	u := newUsers(t, placesOf(4))
	u.up("a", "m")
	u.step(BatchPut{Batch{ID: "b", Models: []ModelLines{{Model: "m", Lines: 100,
		PromptTokens: 100, MaxTokens: 1000}}}})
	lines := make([]Line, 100)
	for i := range lines {
		lines[i] = Line{Slot: i, PromptTokens: 10, MaxTokens: 10}
	}
	u.step(Loaded{Key: JobKey{"b", "m"}, Lines: lines})
	if len(u.started) < 4 {
		t.Fatalf("%d lines started", len(u.started))
	}
	ids := []uint64{u.ask(flows.Critical, "chat"), u.ask(flows.Critical, "chat")}
	for len(u.evicted) > 0 && len(u.admitted) < 2 {
		s := u.evicted[0]
		u.evicted = u.evicted[1:]
		at := slices.IndexFunc(u.started, func(x Start) bool {
			return x.Slot == s.Slot && x.Chunk == s.Chunk
		})
		u.step(&Finished{Start: u.started[at], Outcome: Evicted})
	}
	for _, id := range ids {
		if u.admitted[id].Runner != "a" {
			t.Errorf("request %d got %+v", id, u.admitted[id])
		}
	}
	if n := u.p.runners["a"].inFlight + u.p.runners["a"].requests; n > 4 {
		t.Errorf("%d run on 4 places", n)
	}
}

// Requests that wait for a runner that goes move to another, and those without one are refused.
func TestRequestsSurviveTheirPool(t *testing.T) {
	u := newUsers(t, placesOf(1))
	u.up("a", "m")
	running := u.ask(flows.Critical, "chat")
	moved := u.ask(flows.Critical, "chat")
	u.step(RunnerUp{Runner: "b", Models: []string{"m", "n"}})
	u.step(RunnerGone{"a"})
	if u.admitted[moved].Runner != "b" {
		t.Fatalf("the request got %+v, %+v", u.admitted[moved], u.refused[moved])
	}
	u.end(running, Died, 0)
	waits := u.ask(flows.Critical, "chat")
	u.step(RunnerGone{"b"})
	if u.refused[waits].Why != NoRunner {
		t.Errorf("without a runner: %+v", u.refused[waits])
	}
	u.end(moved, Died, 0)
	if len(u.p.runners) != 0 || len(u.p.requests) != 0 {
		t.Errorf("left: %d runners, %d requests", len(u.p.runners), len(u.p.requests))
	}
}

// An engine that shows requests that wait inside gets fewer, and more again later.
func TestRequestsDoNotQueueInEngines(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	for range 100 {
		u.ask(flows.Critical, "chat")
	}
	read := func(running, waiting float64) {
		u.now = u.now.Add(time.Second)
		r := flowcontrol.NoReading(flowcontrol.Metrics, u.now)
		r.Running, r.Waiting = running, waiting
		u.step(Reading{Runner: "a", Reading: &r})
	}
	read(64, 36)
	if got := u.p.runners["a"].requestPlaces(u.now); got != 64 {
		t.Fatalf("%d places after a reading with 64 that run and 36 that wait", got)
	}
	for _, id := range slices.Clone(u.order)[:50] {
		u.end(id, Succeeded, 10)
	}
	for range 50 {
		u.ask(flows.Critical, "chat")
	}
	if got := u.p.runners["a"].requests; got != 64 {
		t.Errorf("%d requests run on 64 places", got)
	}
	for range 60 {
		read(64, 0)
	}
	if got := u.p.runners["a"].requestPlaces(u.now); got <= 64 {
		t.Errorf("%d places after a minute without a request that waits", got)
	}
}

// A runner that fails requests at once does not eat them.
func TestFailingRunnerGetsFewRequests(t *testing.T) {
	for _, outcome := range []Outcome{Failed, Unreachable} {
		u := newUsers(t, nil)
		u.up("bad", "m")
		u.up("good", "m")
		eaten := 0
		for range 1000 {
			id := u.ask(flows.Standard, "chat")
			u.now = u.now.Add(10 * time.Millisecond)
			if u.admitted[id].Runner == "bad" {
				u.end(id, outcome, 0)
				eaten++
			} else {
				u.end(id, Succeeded, 10)
			}
		}
		if eaten > 50 {
			t.Errorf("%s: the failing runner got %d of 1000 requests", outcome, eaten)
		}
	}
}

// With an objective, requests of lower classes wait as soon as more would endanger it.
func TestObjectiveBoundsLowerClasses(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	random := rand.New(rand.NewPCG(3, 3))
	type running struct {
		id       uint64
		critical bool
		left     int
		came     time.Time
	}
	var inside []*running
	objective := 40 * time.Millisecond
	late, answered := 0, 0
	start := u.now
	known := 0
	for u.now.Sub(start) < 3*time.Minute {
		// Twice the capacity: 2 critical and 10 standard requests a second of some 100 tokens.
		if random.Float64() < 0.06 {
			u.ask(flows.Critical, "chat", func(r *Request) { r.Objective = objective })
		}
		if random.Float64() < 0.3 {
			u.ask(flows.Standard, "bulk")
		}
		for ; known < len(u.order); known++ {
			id := u.order[known]
			inside = append(inside, &running{id: id, left: 50 + random.IntN(100), came: u.now,
				critical: u.p.requests[id].Objective > 0})
			u.step(RequestSpoke{ID: id})
		}
		// An iteration of 10 ms and 0.5 ms for each sequence.
		took := 10*time.Millisecond + time.Duration(len(inside))*500*time.Microsecond
		u.now = u.now.Add(took)
		if n := len(inside); n > 0 {
			u.step(RequestsDecoded{Runner: "a", Tokens: n, Gaps: n, Time: time.Duration(n) * took})
		}
		for _, r := range slices.Clone(inside) {
			if r.left--; r.left > 0 {
				continue
			}
			inside = slices.DeleteFunc(inside, func(x *running) bool { return x == r })
			asked := u.p.requests[r.id]
			tokens := 100
			u.step(&RequestEnded{ID: r.id, Outcome: Succeeded, OutputTokens: tokens,
				Latency: u.now.Sub(asked.started)})
			if r.critical && u.now.Sub(start) > 10*time.Second {
				answered++
				if u.now.Sub(asked.came) > time.Duration(float64(tokens)*1.5*float64(objective)) {
					late++
				}
			}
		}
	}
	if answered < 100 || float64(late) > 0.01*float64(answered) {
		t.Errorf("%d of %d requests with an objective were late", late, answered)
	}
	if len(u.refused) == 0 {
		t.Error("nothing was refused at twice the capacity")
	}
	for _, s := range u.p.Requests(u.now) {
		if s.Bound == 0 || len(s.UseCases) != 2 || s.UseCases[1].Attained < 0.9 {
			t.Errorf("status: %+v", s)
		}
	}
}

// What requests show is a reading, so the default policy protects them without any metrics.
func TestRequestsAreReadings(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	seen := &seenReadings{Controller: u.p.pools[0].flow}
	u.p.pools[0].flow = seen
	id := u.ask(flows.Critical, "chat")
	u.now = u.now.Add(100 * time.Millisecond)
	u.step(RequestSpoke{ID: id, Latency: 100 * time.Millisecond})
	u.step(RequestsDecoded{Runner: "a", Tokens: 5, Gaps: 4, Time: 80 * time.Millisecond})
	u.pass(time.Second)
	u.end(id, Succeeded, 50)
	u.pass(2 * time.Second)
	busy, idle := false, false
	for _, r := range seen.all {
		if r.Runner == "a" && r.Reading.Running == 1 && r.Reading.TokenGaps == 4 {
			busy = true
		}
		idle = r.Runner == "a" && r.Reading.Running == 0 || idle && r.Runner == ""
	}
	if !busy || !idle {
		t.Errorf("readings: busy %v, idle at the end %v", busy, idle)
	}
	last := seen.all[len(seen.all)-1].Reading
	if last.Requests != 1 || flowcontrol.Attained(last.FirstTokenTimes, 1).Requests != 1 {
		t.Errorf("the last reading of users: %+v", last)
	}
	// An engine's own reading counts rather than one made of requests.
	r := flowcontrol.NoReading(flowcontrol.Metrics, u.now)
	r.Running = 7
	u.step(Reading{Runner: "a", Reading: &r})
	before := len(seen.all)
	u.pass(5 * time.Second)
	for _, x := range seen.all[before:] {
		if x.Runner != "" {
			t.Errorf("a reading beside the engine's own: %+v", x.Reading)
		}
	}
}

type seenReadings struct {
	flowcontrol.Controller
	all []flowcontrol.Read
}

func (s *seenReadings) Observe(now time.Time, o flowcontrol.Observation) bool {
	if r, is := o.(*flowcontrol.Read); is {
		s.all = append(s.all, *r)
	}
	return s.Controller.Observe(now, o)
}

// Whatever happens, each request gets one answer, and nothing is left at the end.
func TestRequestsAreAnsweredOnce(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		u := newUsers(t, func(c *Config, _ *flowcontrol.Config) {
			c.Inline.MaxRunning, c.Inline.Flows.MaxWaiting = 1+random.IntN(4), 1+random.IntN(8)
			c.Inline.Flows.Policy = []string{"strict", "weighted"}[random.IntN(2)]
		})
		running := map[uint64]bool{}
		classes := []string{flows.Critical, flows.Standard, flows.Flex, "unknown"}
		withdrawn := map[uint64]bool{}
		for range 300 {
			u.now = u.now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			switch k := random.IntN(12); {
			case k < 5:
				u.ask(classes[random.IntN(4)], string(rune('a'+random.IntN(3))), func(r *Request) {
					r.Model = []string{"m", "n"}[random.IntN(2)]
					r.Objective = time.Duration(random.IntN(2)) * 50 * time.Millisecond
				})
			case k < 8:
				for id := range running {
					delete(running, id)
					u.end(id, Outcome(random.IntN(Outcomes)), random.IntN(50))
					break
				}
			case k == 8:
				id := 1 + random.Uint64N(u.last+1)
				_, a := u.admitted[id]
				_, r := u.refused[id]
				if !a && !r && id <= u.last {
					withdrawn[id] = true
					u.step(RequestLeft{id})
				}
			case k == 9:
				u.step(RunnerUp{Runner: string(rune('x' + random.IntN(3))),
					Models: [][]string{{"m"}, {"n"}, {"m", "n"}}[random.IntN(3)]})
			case k == 10 && random.IntN(3) == 0:
				u.step(RunnerGone{string(rune('x' + random.IntN(3)))})
			default:
				u.step(Tick{})
			}
			for id := range u.admitted {
				if u.p.requests[id] != nil && u.p.requests[id].runner != nil {
					running[id] = true
				}
			}
		}
		u.step(Drain{})
		for id := range running {
			u.end(id, Succeeded, 1)
		}
		for id := uint64(1); id <= u.last; id++ {
			_, a := u.admitted[id]
			_, r := u.refused[id]
			if a == r && !withdrawn[id] || withdrawn[id] && (a || r) {
				t.Fatalf("seed %d: request %d: admitted %v, refused %v, withdrawn %v", seed, id, a,
					r, withdrawn[id])
			}
		}
		for _, r := range u.p.runners {
			if r.requests != 0 || r.prefilling != 0 || r.carried != 0 {
				t.Fatalf("seed %d: runner %s is left with %d requests, %d tokens, %g work", seed,
					r.id, r.requests, r.prefilling, r.carried)
			}
		}
		for _, pool := range u.p.pools {
			if pool.requestsRunning != 0 || pool.requests.Waiting() != 0 {
				t.Fatalf("seed %d: a pool is left with requests", seed)
			}
		}
	}
}

// Requests with the same beginning go to the runner that has computed it, unless that carries more
// work than the cache saves.
func TestRequestsFindPrefixes(t *testing.T) {
	u := newUsers(t, nil)
	for _, r := range []string{"a", "b", "c"} {
		u.up(r, "m", "other")
	}
	prefix := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	ask := func(model string, prefix []uint64) Admission {
		t.Helper()
		return u.admitted[u.ask(flows.Standard, "chat", func(r *Request) {
			r.Model, r.Prefix, r.PromptTokens = model, prefix, 8*PrefixTokens
		})]
	}
	first := ask("m", prefix)
	u.step(RequestSpoke{ID: first.ID})
	u.end(first.ID, Succeeded, 100)
	ask("m", []uint64{10, 11}) // makes another runner busier
	again := ask("m", prefix)
	if again.Runner != first.Runner || again.Cached != 8*PrefixTokens {
		t.Errorf("the same prefix got %+v after %+v", again, first)
	}
	if other := ask("other", prefix); other.Cached != 0 {
		t.Errorf("the prefix of another model got %+v", other)
	}
	runners := map[string]bool{}
	for range 100 {
		runners[ask("m", prefix).Runner] = true
	}
	if len(runners) != 3 {
		t.Errorf("a hot prefix uses the runners %v", runners)
	}
	u.step(RunnerGone{first.Runner})
	u.up(first.Runner, "m", "other")
	for range 100 {
		if got := ask("m", prefix); got.Runner == first.Runner {
			if got.Cached != 0 {
				t.Errorf("a runner that came back has computed nothing yet: %+v", got)
			}
			return
		}
	}
	t.Error("the runner that came back got no request")
}

// A runner that has shed a single request gets more again, also without any metrics, and lines stay
// on it.
func TestShedRunnerRecovers(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	u.step(&RequestEnded{ID: u.ask(flows.Standard, "chat"), Outcome: Shed, Status: 429})
	if n := u.p.runners["a"].requestPlaces(u.now); n != 1 {
		t.Fatalf("%d places after a shed", n)
	}
	next := 1 // of the admissions
	for range 2000 {
		for u.p.pools[0].requests.Waiting() < 5 {
			u.ask(flows.Standard, "chat")
		}
		u.now = u.now.Add(10 * time.Millisecond)
		if next < len(u.order) {
			u.end(u.order[next], Succeeded, 10)
			next++
		}
	}
	if n := u.p.runners["a"].requestPlaces(u.now); n < 10 {
		t.Errorf("%d places after 2000 answers", n)
	}
}

// A critical request whose first token nobody sees, and continuous prompts of others, do not keep
// the classes after it from starting.
func TestPacingEnds(t *testing.T) {
	u := newUsers(t, nil)
	u.up("a", "m")
	critical := func(r *Request) { r.Objective = 50 * time.Millisecond }
	u.ask(flows.Critical, "chat", critical, func(r *Request) { r.Streamed = false })
	long := func(r *Request) { r.PromptTokens = 3000 }
	if id := u.ask(flows.Standard, "other", long); u.admitted[id].ID == 0 {
		t.Error("a request waits for a prompt that is never seen to be computed")
	}
	u.ask(flows.Critical, "chat", critical)
	paced := u.ask(flows.Standard, "other", long)
	if u.admitted[paced].ID != 0 {
		t.Error("a long prompt starts beside others")
	}
	u.pass(pacedFor + time.Second)
	if u.admitted[paced].ID == 0 {
		t.Error("a long prompt waits for ever")
	}
}

// What the guard protects is what there was lately.
func TestGuardForgetsOldObjectives(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var g guard
	g.came(now, time.Millisecond, 2)
	for range 600 {
		now = now.Add(time.Second)
		g.came(now, 50*time.Millisecond, 0)
	}
	if g.objective != 0.05 || g.class != 0 {
		t.Errorf("it protects %g s per token up to class %d", g.objective, g.class)
	}
	g.bound = 1
	for range 20 {
		now = now.Add(guardEvery)
		g.look(now, 1)
	}
	if g.bound < 10 {
		t.Errorf("without any stream the bound stays %g", g.bound)
	}
}
