package simulator

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Every line is recorded once or still in the system at the end, and the harvest is the sum of the
// recorded lines, on engines that shed, preempt and refuse, with lines that expire, and on replicas
// that crash, restart, are drained and reclaimed. No interactive request is lost either.
func TestNoLineIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Setup{Scenario: scenario.Default(), Policy: daemon(), Seed: rapid.Uint64().Draw(
			t, "seed")}
		s.Profile, _ = engine.ProfileNamed("llama-8b-a100")
		s.Scenario.Name, s.Scenario.Horizon = "drawn", 4*time.Minute
		s.Scenario.Interactive.Generator = "conversation"
		s.Scenario.Interactive.Rate = rapid.Float64Range(0.1, 4).Draw(t, "rate")
		pool := &s.Scenario.Pool
		pool.Profile, pool.Replicas = s.Profile.Name, rapid.IntRange(1, 3).Draw(t, "replicas")
		pool.ShedAbove = rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "shed above")
		pool.KVTokens = rapid.SampledFrom([]int{3000, 16_000, 400_000}).Draw(t, "kv")
		pool.Network = rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond,
			2 * time.Second}).Draw(t, "network")
		pool.Router = rapid.SampledFrom([]scenario.Router{scenario.LeastWork,
			scenario.LeastRequests, scenario.RoundRobin, scenario.PrefixAffinity,
			scenario.ExpectedLoad, scenario.Inline}).Draw(t, "router")
		pool.RouterView = rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(t, "view")
		s.Policy.ChunkLines = rapid.SampledFrom([]int{1, 7, 1024}).Draw(t, "chunk")
		s.Policy.Flow.Policy = rapid.SampledFrom([]string{"aimd", "fixed"}).Draw(t, "policy")
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			s.Scenario.Jobs = append(s.Scenario.Jobs, scenario.Job{
				Name:   string(rune('a' + i)),
				Kind:   rapid.SampledFrom(workload.Kinds()).Draw(t, "kind").Name,
				At:     time.Duration(rapid.IntRange(0, 300).Draw(t, "at")) * time.Second,
				Window: time.Duration(rapid.IntRange(0, 120).Draw(t, "window")) * time.Second,
				Lines:  rapid.IntRange(0, 2000).Draw(t, "lines"),
			})
		}
		drawFaults(t, &s.Scenario)
		if s.Scenario.Inline() {
			pool.RouterView = 0
			if rapid.Bool().Draw(t, "restarted") {
				s.Scenario.Faults = append(s.Scenario.Faults, scenario.Fault{At: 2 * time.Minute,
					Kind: scenario.Restart, For: 5 * time.Second})
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		sim, _, err := simulate(s, true, silent) // panics if a line makes a wrong transition
		if err != nil {
			t.Fatal(err)
		}
		sum, jobs := sim.dispatcher.report()
		inFlight, input, output := 0, int64(0), int64(0)
		for i, j := range sim.dispatcher.jobs {
			count := map[lineState]int{}
			for _, state := range j.lines {
				count[state]++
			}
			reported := jobs[i]
			if count[lineRecorded] != reported.Done+reported.Failed ||
				count[lineInFlight] != reported.InFlight || len(j.lines) > j.Lines {
				t.Fatalf("job %+v, but its %d lines are %v", reported, len(j.lines), count)
			}
			if all := reported.Done+reported.Failed == j.Lines; all != (reported.Finished > 0) {
				t.Fatalf("job %+v of %d lines: is it finished?", reported, j.Lines)
			}
			inFlight += reported.InFlight
			if reported.Failed == 0 {
				in, out := recorded(
					j, s.Engine().Profile.KVTokens/engine.BlockSize*engine.BlockSize)
				if in != j.input || out != j.output {
					t.Fatalf("job %+v harvested %d + %d tokens, its recorded lines hold %d + %d",
						reported, j.input, j.output, in, out)
				}
			}
			input, output = input+j.input, output+j.output
		}
		if sum.Input != input || sum.Output != output || sum.Useful != input+output {
			t.Fatalf("harvest %+v, by jobs %d + %d", sum, input, output)
		}
		checkExpectedWork(t, sim)
		inside := 0
		for _, req := range sim.requests {
			if req.line != nil && !req.line.canceled {
				inside++
			}
		}
		if inside > inFlight {
			t.Fatalf("%d lines are inside engines, %d under way", inside, inFlight)
		}
		outside := sim.linesOutsideEngines()
		load := 0
		for _, r := range sim.replicas {
			load += r.inside
		}
		if load != len(sim.requests) {
			t.Fatalf("replicas hold %d requests, %d are under way", load, len(sim.requests))
		}
		arrivals, err := s.firstClassTraffic()
		if err != nil {
			t.Fatal(err)
		}
		judged := 0
		for a := range workload.All(arrivals) {
			if a.At >= scenario.Edge && a.At < s.Scenario.Horizon-scenario.Edge {
				judged++
			}
		}
		if users := sim.interactive.report(); users.Requests+users.Undecided != judged {
			t.Fatalf("%d interactive requests came, %d were judged and %d are undecided", judged,
				users.Requests, users.Undecided)
		}
		for range 10 { // one way takes no longer than 3 s
			sim.run(sim.now.Add(time.Second))
			now := sim.linesOutsideEngines()
			maps.DeleteFunc(outside, func(a *attempt, _ bool) bool { return !now[a] })
		}
		for a := range outside {
			t.Fatalf(
				"line %d of job %s has been on its way to or from %s for 10 s", a.line, a.job.Name,
				a.start.Runner)
		}
	})
}

// linesOutsideEngines returns the lines in flight that are in no engine.
func (sim *simulation) linesOutsideEngines() map[*attempt]bool {
	lines := map[*attempt]bool{}
	for _, j := range sim.dispatcher.jobs {
		for _, a := range j.attempts {
			if req := sim.requests[a.id]; a.id == 0 || req == nil || req.line != a {
				lines[a] = true
			}
		}
	}
	return lines
}

// misfortune draws what may befall replicas.
func drawFaults(t *rapid.T, s *scenario.Scenario) {
	p := &s.Pool
	p.Discovery = rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(t, "discovery")
	p.RouterView = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "router view")
	p.Start = scenario.Start{Median: 10 * time.Second, Sigma: 0.5, Min: time.Second,
		Max: time.Minute, Fail: 0.2}
	p.Drain = scenario.Drain{Batch: time.Duration(rapid.IntRange(0, 20).Draw(t, "drain batch")) *
		time.Second, Interactive: 10 * time.Second}
	if rapid.Bool().Draw(t, "scaled") {
		p.Max = p.Replicas + 2
	}
	if rapid.Bool().Draw(t, "spot") {
		s.BatchPools = []scenario.BatchPool{{Name: "spot", Scaling: scenario.Scaling{
			Max: 3, Price: 0.4, Reclaim: 0.999}}}
	}
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		f := scenario.Fault{
			At: time.Duration(rapid.IntRange(0, 239).Draw(t, "fault at")) * time.Second,
			Kind: rapid.SampledFrom([]scenario.FaultKind{scenario.Crash, scenario.Crash,
				scenario.Slow,
				scenario.Stall, scenario.Flush}).Draw(t, "fault"),
		}
		if len(s.BatchPools) > 0 && rapid.Bool().Draw(t, "of spot") {
			f.Pool = "spot"
		}
		if rapid.Bool().Draw(t, "one") {
			f.Replicas = []int{0}
		}
		switch f.Kind {
		case scenario.Crash:
			f.For = time.Duration(rapid.IntRange(0, 30).Draw(t, "dead for")) * time.Second
			f.Lost = rapid.SampledFrom([]scenario.Lost{"", scenario.Retried, scenario.Missed}).Draw(
				t, "lost")
		case scenario.Slow:
			f.Factor, f.For = 3, 20*time.Second
		case scenario.Stall:
			f.For = 200 * time.Millisecond
		}
		s.Faults = append(s.Faults, f)
	}
}

// recorded sums up the recorded lines; an engine ends an answer at its context length.
func recorded(j *job, context int) (input, output int64) {
	for i, state := range j.lines {
		if state == lineRecorded {
			r := j.Line(i)
			input, output = input+int64(r.Input), output+int64(min(r.Output, context-r.Input))
		}
	}
	return input, output
}

func TestDeadlines(t *testing.T) {
	s := bundled(t, "s1-steady.yaml", horizon(10*time.Minute), fixed(8))
	s.Scenario.Jobs = []scenario.Job{
		{Name: "easy", Kind: "score", At: 2 * time.Minute, Window: 5 * time.Minute, Lines: 100},
		{Name: "hopeless", Kind: "gen", At: time.Minute, Window: time.Minute, Lines: 50_000},
		{Name: "open", Kind: "bal", At: 8 * time.Minute, Window: time.Hour, Lines: 50_000},
		{Name: "ahead", Kind: "bal", At: 11 * time.Minute, Lines: 1},
	}
	r := result(t, s)
	if r.Batch.Deadlines != 2 || r.Batch.Met != 1 {
		t.Errorf("%d of %d deadlines met, want 1 of 2", r.Batch.Met, r.Batch.Deadlines)
	}
	want := map[string]JobOutcome{"easy": Finished, "hopeless": Expired, "open": Unfinished,
		"ahead": NotSubmitted}
	for _, j := range r.Jobs {
		if j.Outcome != want[j.Name] {
			t.Errorf("job %+v, want %s", j, want[j.Name])
		}
	}
}

// Work lost to preemption is reported.
func TestPreemptionIsWaste(t *testing.T) {
	s := tiny(t, "0,1,1\n100,1,1\n600,1,1\n", scenario.Job{Name: "j", Kind: "gen"})
	s.Scenario.Pool.KVTokens = 8000
	s.Policy.Flow.Policy = "fixed"
	r := result(t, s)
	if r.Batch.Preemptions == 0 || r.Batch.Wasted < int64(r.Batch.Preemptions) {
		t.Errorf("eight long answers in 8,000 tokens: %+v", r.Batch)
	}
	s.Scenario.Pool.KVTokens = 100_000
	if r := result(t, s); r.Batch.Preemptions != 0 || r.Batch.Wasted != 0 {
		t.Errorf("with room for all: %+v", r.Batch)
	}
}
