package decision

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

var start = time.Unix(1_800_000_000, 0)

// fakePlanner shows one pool.
type fakePlanner struct {
	pool  plan.PoolStatus
	terms []flowcontrol.Term
	slo   flowcontrol.SLO
}

func (f *fakePlanner) Pools() []plan.PoolStatus { return []plan.PoolStatus{f.pool} }
func (f *fakePlanner) Terms(time.Time) [][]flowcontrol.Term {
	return [][]flowcontrol.Term{f.terms}
}
func (f *fakePlanner) Warnings(time.Time) [][]flowcontrol.Warning {
	return [][]flowcontrol.Warning{nil}
}
func (f *fakePlanner) Objectives(string) flowcontrol.SLO { return f.slo }

// newFake returns a pool of n runners whose policy explains itself.
func newFake(n int) *fakePlanner {
	f := &fakePlanner{pool: plan.PoolStatus{ID: "m", Models: []string{"m"}, Policy: "headroom",
		Reason: "token_time", Granted: "token_time", InFlight: 3, Limit: 4}}
	f.terms = []flowcontrol.Term{{Name: flowcontrol.TermObjective, Value: 50, Unit: "ms"},
		{Name: flowcontrol.TermAlone, Value: 0, Unit: "ms"}}
	for i := range n {
		id := fmt.Sprint("gpu-", i)
		f.pool.Runners = append(f.pool.Runners, plan.RunnerStatus{ID: id, InFlight: 1, Limit: 2,
			Prompt: flowcontrol.NoLimit, Granted: "token_time"})
		add := func(name string, value float64) {
			f.terms = append(f.terms, flowcontrol.Term{Runner: id, Name: name, Value: value})
		}
		add(flowcontrol.TermTokenTime, 40)
		add(flowcontrol.TermTokenTimeAge, 1)
		add(flowcontrol.TermInteractiveRunning, 7)
		add(flowcontrol.TermInteractiveWaiting, 0)
		add(flowcontrol.TermLoadAge, math.Inf(1))
		for j := range 12 {
			add(fmt.Sprint("term ", j), float64(j))
		}
	}
	return f
}

func newRecorder(p Planner) (*Recorder, *History) {
	h := NewHistory()
	return NewRecorder(h, p), h
}

func decisionsOf(t *testing.T, h *History, q Query) []Decision {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100_000
	}
	found, known := h.Decisions("m", q)
	if !known {
		t.Fatal("the pool is unknown")
	}
	return slices.Collect(found.All())
}

// Late requests are those that the objectives of the pool make late. What was late by others before
// a reload does not count.
func TestGatewaysAreJudgedByThePoolsObjectives(t *testing.T) {
	fake := newFake(1)
	r, h := newRecorder(fake)
	read := func(soon, all float64) {
		g := flowcontrol.NoReading(flowcontrol.Gateway, start)
		g.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 1, Count: soon}, {Upper: 2, Count: all},
			{Upper: math.Inf(1), Count: all}}
		r.Step(start, plan.Reading{Model: "m", Reading: &g}, &plan.Actions{})
	}
	fake.slo.TTFT = 2 * time.Second
	read(90, 100)
	read(180, 200)
	fake.slo.TTFT = time.Second
	read(180, 200)
	read(190, 220)
	r.Tick(start)
	got := decisionsOf(t, h, Query{})[0].Gateway
	if got == nil || got.FirstTokens != 120 || got.LateFirstTokens != 10 {
		t.Errorf("the gateway shows %+v, want 120 first tokens of which 10 were late", got)
	}
}

func TestDecisionsShowWhatWasReadAndDecided(t *testing.T) {
	fake := newFake(2)
	fake.pool.Runners[0].Evict, fake.pool.Runners[0].InFlight = true, 2
	r, h := newRecorder(fake)
	read := flowcontrol.NoReading(flowcontrol.Metrics, start.Add(-time.Second))
	read.Running, read.KVUsed = 9, 0.5
	r.Step(start, plan.Reading{Runner: "gpu-0", Reading: &read}, &plan.Actions{})
	older := flowcontrol.NoReading(flowcontrol.Capabilities, start)
	r.Step(start, plan.Reading{Runner: "gpu-0", Reading: &older}, &plan.Actions{})
	gateway := func(requests, late float64) {
		g := flowcontrol.NoReading(flowcontrol.Gateway, start)
		g.TTFT = flowcontrol.Attainment{Requests: requests, Late: late}
		r.Step(start, plan.Reading{Model: "m", Reading: &g}, &plan.Actions{})
	}
	gateway(1000, 10)
	gateway(1100, 12)
	gateway(500, 12) // it has restarted
	gateway(510, 13)
	gateway(math.NaN(), math.NaN())
	r.Step(start, plan.Tick{}, &plan.Actions{Evict: []plan.Start{{Runner: "gpu-1"}}})
	r.Tick(start)

	got, err := json.Marshal(decisionsOf(t, h, Query{})[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":1800000000.000,"reason":"token_time","allowance_reason":"token_time",` +
		`"in_flight":3,"allowance":4,"jobs":0,"evicted_total":1,"objective_ms":50,` +
		`"target_ms":null,"alone_ms":null,"first_token_slowdown":null,"first_token_slowdown_allowed":null,` +
		`"first_tokens":null,"first_token_objective_ms":null,"first_token_alone_ms":null,` +
		`"gateway":{"age_s":0,"first_tokens_total":110,"late_first_tokens_total":3,` +
		`"answers_total":0,"late_answers_total":0},"runners":[` +
		`{"name":"gpu-0","in_flight":2,"allowance":2,"reason":"token_time","evicting":true,` +
		`"breaker_open":false,"prompt_tokens":0,"prompt_tokens_allowed":null,` +
		`"reading":{"source":"metrics","age_s":1,"running":9,"waiting":null,"kv_used":0.5},` +
		`"interactive_running":null,"interactive_waiting":null,"token_time_ms":40,` +
		`"first_tokens":null},` +
		`{"name":"gpu-1","in_flight":1,"allowance":2,"reason":"none","evicting":false,` +
		`"breaker_open":false,"prompt_tokens":0,"prompt_tokens_allowed":null,"reading":null,` +
		`"interactive_running":null,"interactive_waiting":null,"token_time_ms":40,` +
		`"first_tokens":null}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the decision is (-want +got)\n%s", diff)
	}

	fake.terms = append(fake.terms, flowcontrol.Term{Name: flowcontrol.TermWatched, Value: 42},
		flowcontrol.Term{Name: flowcontrol.TermWatching, Value: 60},
		flowcontrol.Term{Name: flowcontrol.TermTarget, Value: 45})
	watched, seen := newRecorder(fake)
	watched.Tick(start)
	if d := decisionsOf(t, seen, Query{})[0]; d.WatchLeft != 18 || d.WatchOf != 60 ||
		d.Target != 45 {
		t.Errorf("watched for %v of %v s more, target %v", d.WatchLeft, d.WatchOf, d.Target)
	}

	with := decisionsOf(t, h, Query{Terms: true})[0]
	if len(with.Terms) != 2 || len(with.Runners[1].Terms) != 17 ||
		with.Runners[1].Terms[16] != (Term{Name: "term 11", Value: 11}) {
		t.Errorf("the terms are %+v and %+v", with.Terms, with.Runners[1].Terms)
	}
}

func TestOldTokenTimesAreUnknown(t *testing.T) {
	fake := newFake(1)
	r, h := newRecorder(fake)
	for i, age := range []float64{30, 31, math.Inf(1), math.NaN()} {
		fake.terms[3].Value = age
		r.Tick(start.Add(time.Duration(i) * time.Second))
		known := h.Pools()[0].Last.Runners[0].TokenTime.Known()
		if known != (age == 30) {
			t.Errorf("%v seconds old: known %t", age, known)
		}
	}
}

// A sample is taken each second, and after a change, but no more than twice a second.
func TestChangesAreSampled(t *testing.T) {
	fake := newFake(1)
	r, h := newRecorder(fake)
	for ms := 0; ms <= 5000; ms += 5 {
		now := start.Add(time.Duration(ms) * time.Millisecond)
		did := plan.Actions{}
		if ms == 1300 || ms >= 3000 && ms < 4000 {
			fake.pool.Limit++
			did.Changed = true
		}
		r.Step(now, plan.Tick{}, &did)
		if ms%250 == 0 {
			r.Tick(now)
		}
	}
	var at []int
	for _, d := range decisionsOf(t, h, Query{}) {
		at = append(at, int(d.Time.Sub(start).Milliseconds()))
	}
	// 3995 is the last change; its sample comes with the next tick.
	want := []int{0, 1000, 1500, 2500, 3000, 3500, 4000, 5000}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("samples are at (-want +got)\n%s", diff)
	}
}

// An hour of a pool stays within a megabyte, and shows the hour, however many runners it has.
func TestMemoryIsBounded(t *testing.T) {
	for _, runners := range []int{1, 4, 16, 200} {
		if testing.Short() && runners > 16 {
			t.Log("200 runners take long under the race detector")
			break
		}
		r, h := newRecorder(newFake(runners))
		for s := range 2 * 3600 {
			r.Tick(start.Add(time.Duration(s) * time.Second))
		}
		line := h.pools["m"]
		bytes := 0
		for _, s := range append(slices.Clone(line.hour.samples), line.recent.samples...) {
			bytes += s.bytes()
		}
		if bytes > 1<<20 {
			t.Errorf("%d runners: %d bytes", runners, bytes)
		}
		all := line.all()
		if covered := all[len(all)-1].at.Sub(all[0].at); covered < 50*time.Minute {
			t.Errorf("%d runners: the samples cover %v", runners, covered)
		}
		if runners == 4 && line.recent.samples[0].at.After(start.Add(2*time.Hour-10*time.Minute)) {
			t.Errorf("the last seconds begin at %v", line.recent.samples[0].at)
		}
		for i := 1; i < len(all); i++ {
			if !all[i].at.After(all[i-1].at) {
				t.Fatalf("%d runners: sample %d is not after the one before", runners, i)
			}
		}
	}
}

// Names that change all the time do not fill the memory.
func TestPoolsThatAreGoneAreForgotten(t *testing.T) {
	fake := newFake(1)
	r, h := newRecorder(fake)
	for i := range 100 {
		fake.pool.ID = fmt.Sprint("m", i)
		r.Tick(start.Add(time.Duration(i) * time.Second))
	}
	names := h.Names()
	if len(names) != 1+maxGone || !slices.Contains(names, "m99") || !slices.Contains(names, "m91") {
		t.Errorf("held are %v", names)
	}
	if pools := h.Pools(); len(pools) != 1 || pools[0].Name != "m99" {
		t.Errorf("existing are %+v", pools)
	}
	if _, known := h.Decisions("m1", Query{Limit: 1}); known {
		t.Error("a forgotten pool is known")
	}
}

// A runner that joins changes the columns of the samples, and neither those before nor after.
func TestRunnersJoin(t *testing.T) {
	fake := newFake(1)
	r, h := newRecorder(fake)
	r.Tick(start)
	two := newFake(2)
	fake.pool, fake.terms = two.pool, two.terms
	r.Tick(start.Add(time.Second))
	all := decisionsOf(t, h, Query{})
	if len(all[0].Runners) != 1 || len(all[1].Runners) != 2 ||
		all[1].Runners[1].TokenTime != 40 || all[0].Objective != 50 {
		t.Errorf("got %+v", all)
	}
}

// Selections are those of a slow obvious version.
func TestSelections(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fake := newFake(1)
	r, h := newRecorder(fake)
	now := start
	for range 900 {
		now = now.Add(time.Second + time.Duration(random.IntN(700))*time.Millisecond)
		fake.pool.InFlight++
		r.Tick(now)
	}
	all := decisionsOf(t, h, Query{})
	for range 300 {
		moment := func() time.Time {
			if random.IntN(3) == 0 {
				return time.Time{}
			}
			return start.Add(time.Duration(random.IntN(1500)) * time.Second)
		}
		q := Query{Since: moment(), Until: moment(), Limit: 1 + random.IntN(1200)}
		var want []Decision
		for _, d := range all {
			if (q.Since.IsZero() || d.Time.After(q.Since)) &&
				(q.Until.IsZero() || !d.Time.After(q.Until)) {
				want = append(want, d)
			}
		}
		more := len(want) > q.Limit
		if more && q.Since.IsZero() {
			want = want[len(want)-q.Limit:]
		} else if more {
			want = want[:q.Limit]
		}
		found, _ := h.Decisions("m", q)
		got := slices.Collect(found.All())
		if found.More != more || len(got) != len(want) ||
			len(got) > 0 && (got[0].InFlight != want[0].InFlight ||
				got[len(got)-1].InFlight != want[len(want)-1].InFlight) {
			t.Fatalf("%+v: %d decisions, more %t; want %d, %t", q, len(got), found.More,
				len(want), more)
		}
	}
	stepped := decisionsOf(t, h, Query{Step: 30 * time.Second})
	for i := 1; i < len(stepped); i++ {
		if apart := stepped[i].Time.Sub(stepped[i-1].Time.Time); apart < 30*time.Second {
			t.Fatalf("decisions are %v apart", apart)
		}
	}
	if last := stepped[len(stepped)-1]; last.InFlight != all[len(all)-1].InFlight {
		t.Error("the latest decision is left out")
	}
}

// The time of a decision, as JSON shows it, continues after that decision.
func TestTimesAreCursors(t *testing.T) {
	r, h := newRecorder(newFake(1))
	r.Tick(start.Add(123456 * time.Nanosecond))
	at := decisionsOf(t, h, Query{})[0].Time
	text, err := at.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		t.Fatal(err)
	}
	since := time.UnixMilli(int64(math.Round(1000 * seconds)))
	if got := decisionsOf(t, h, Query{Since: since}); len(got) != 0 {
		t.Errorf("since its own time, there is still %v", got)
	}
}

// BenchmarkStep is what each event of the planner costs.
func BenchmarkStep(b *testing.B) {
	r, _ := newRecorder(newFake(16))
	r.Tick(start)
	ev, did := &plan.Finished{}, plan.Actions{Changed: true}
	for b.Loop() {
		r.Step(start, ev, &did)
	}
}

// BenchmarkSample is what one or two samples a second cost, apart from the planner's part.
func BenchmarkSample(b *testing.B) {
	r, _ := newRecorder(newFake(16))
	now := start
	for b.Loop() {
		now = now.Add(time.Second)
		r.Tick(now)
	}
}
