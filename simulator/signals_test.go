package simulator

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// recordingController records all observations and grants what the test sets. The registry is
// global, so there is one such controller for all tests.
type recordingController struct {
	granted       flowcontrol.Allowance
	evictions     []time.Duration // of the youngest line of each runner, in order
	carried       map[string]int  // lines by runner
	onObservation func(now time.Time, o flowcontrol.Observation)
	warn          func(now time.Time) []flowcontrol.Warning // nil: never
}

func (s *recordingController) Warnings(now time.Time) []flowcontrol.Warning {
	if s.warn == nil {
		return nil
	}
	return s.warn(now)
}

// newController is set by each test.
var newController func() *recordingController

func init() {
	flowcontrol.Register("spy", flowcontrol.Factory{
		Needs: flowcontrol.Needs{Readings: true, Streams: true},
		New: func(flowcontrol.Config) (flowcontrol.Controller, error) {
			return newController(), nil
		},
	})
}

func (*recordingController) Name() string { return "spy" }

func (s *recordingController) Observe(now time.Time, o flowcontrol.Observation) bool {
	if of, ok := o.(interface{ Carried() flowcontrol.Load }); ok {
		s.carried[o.About()] = of.Carried().InFlight
	}
	_, joined := o.(*flowcontrol.RunnerJoined)
	if joined {
		s.granted.Runners = append(s.granted.Runners, flowcontrol.RunnerAllowance{
			Runner: o.About(), Lines: s.granted.Pool, Prompt: flowcontrol.NoLimit})
	}
	s.onObservation(now, o)
	return joined
}

func (s *recordingController) Allowance(now time.Time) flowcontrol.Allowance {
	a := s.granted
	a.Runners = slices.Clone(a.Runners)
	a.Until = time.Time{}
	if len(s.evictions) > 0 {
		if at := epoch.Add(s.evictions[0]); at.After(now) {
			a.Until = at
		} else {
			s.evictions = s.evictions[1:]
			for i := range a.Runners {
				r := &a.Runners[i]
				r.Evict, r.Lines = true, max(0, s.carried[r.Runner]-1)
			}
			a.Until = now.Add(time.Nanosecond)
		}
	}
	return a
}

// spied sets the policy of a setup to a spy that grants lines and streams, and
// that sees with see.
func withRecorder(
	s *Setup, lines, streams int, evictions []time.Duration,
	see func(time.Time, flowcontrol.Observation),
) {
	s.Policy.Flow.Policy = "spy"
	newController = func() *recordingController {
		return &recordingController{granted: flowcontrol.Allowance{Pool: lines, Streams: streams},
			evictions: evictions,
			carried:   map[string]int{}, onObservation: see}
	}
}

// record returns what a controller gets in a run, a row for each event.
func record(t *testing.T, s Setup, lines, streams int, evictions ...time.Duration) string {
	t.Helper()
	var text strings.Builder
	withRecorder(&s, lines, streams, evictions, func(now time.Time, o flowcontrol.Observation) {
		text.WriteString(observationText(now, o))
	})
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "wasted %d, evictions %d, preemptions %d\n", sim.dispatcher.wasted,
		sim.dispatcher.evictions, sim.dispatcher.preemptions)
	return text.String()
}

// observationText returns a row for an observation. That of DeadlineDemand, which is the planner's
// own and no signal of the plant, is empty.
func observationText(now time.Time, o flowcontrol.Observation) string {
	text := ""
	switch o := o.(type) {
	case *flowcontrol.RunnerJoined:
		text = "joined     "
	case *flowcontrol.RunnerLeft:
		text = "left       "
	case *flowcontrol.Started:
		text = fmt.Sprintf("started     %d in flight, %d prompt tokens to compute", o.InFlight,
			o.Prefilling)
	case *flowcontrol.FirstToken:
		text = fmt.Sprintf("first token after %v, %d prompt tokens to compute", o.Latency,
			o.Prefilling)
	case *flowcontrol.TokenGaps:
		text = fmt.Sprintf("gaps        %d in %v", o.Gaps, o.Time)
	case *flowcontrol.Answered:
		text = fmt.Sprintf("answered    after %v, %d in, %d cached, %d out, %d in flight",
			o.Latency, o.PromptTokens, o.CachedTokens, o.OutputTokens, o.InFlight)
	case *flowcontrol.Shed:
		text = "shed       "
	case *flowcontrol.Broken:
		text = "broken     "
	case *flowcontrol.Evicted:
		text = fmt.Sprintf("evicted     after %v, %d in flight, %d prompt tokens to compute",
			o.Latency, o.InFlight, o.Prefilling)
	case *flowcontrol.Read:
		text = "read        " + readingText(o.Reading)
	default:
		return ""
	}
	return fmt.Sprintf("%9.4f  %s\n", now.Sub(epoch).Seconds(), text)
}

func readingText(r *flowcontrol.Reading) string {
	text := [...]string{flowcontrol.Metrics: "engine", flowcontrol.Capabilities: "capabilities",
		flowcontrol.Gateway: "gateway"}[r.Source]
	text += fmt.Sprintf(" of %.4f:", r.Sampled.Sub(epoch).Seconds())
	for _, v := range []struct {
		name  string
		value float64
	}{
		{"running", r.Running}, {"waiting", r.Waiting}, {"kv", r.KVUsed}, {"of", r.KVTokens},
		{"prompt", r.PromptTokens}, {"cached", r.CachedTokens},
		{"output", r.OutputTokens}, {"preemptions", r.Preemptions}, {"gaps", r.TokenGaps},
		{"of", r.TokenGapTime}, {"ttft", r.TTFT.Requests},
		{"late", r.TTFT.Late}, {"tpot", r.TPOT.Requests}, {"late", r.TPOT.Late},
	} {
		if !math.IsNaN(v.value) {
			text += fmt.Sprintf(" %s %.4g", v.name, v.value)
		}
	}
	for _, h := range []struct {
		name    string
		buckets []flowcontrol.Bucket
	}{{"gap", r.GapTimes}, {"prompts", r.PromptLengths}, {"answers", r.AnswerLengths}} {
		below := 0.0
		for _, b := range h.buckets {
			if b.Count > below {
				text += fmt.Sprintf(", %s to %.4g: %v", h.name, b.Upper, b.Count-below)
			}
			below = b.Count
		}
	}
	return text
}

// The observations of a policy, in small scenarios that can be checked by hand.
func TestSignals(t *testing.T) {
	// An engine of 10 ms an iteration and 1 ms a token, one of whose users sends a request
	// every ten seconds for a prompt of 20 and an answer of 11 tokens.
	trace := ""
	for at := range 60 {
		trace += fmt.Sprintf("%d,20,11\n", 10*at+3)
	}
	quick := func(s *Setup) {
		s.Scenario.Metrics.Period, s.Scenario.Metrics.Jitter = time.Minute, 0
	}
	slow := func(s *Setup) {
		quick(s)
		s.Scenario.Pool.Network = 40 * time.Millisecond
	}
	for _, test := range []struct {
		name           string
		jobs           []scenario.Job
		lines, streams int
		evictions      []time.Duration
		edit           func(*Setup)
	}{
		// Gaps are reported every plan.GapsInterval while the one streamed line decodes.
		{name: "stream", jobs: []scenario.Job{{Name: "j", Kind: "score", Lines: 6,
			At: 5 * time.Second}}, lines: 2, streams: 1, edit: quick},
		{name: "long-stream", jobs: []scenario.Job{{Name: "j", Kind: "gen", Lines: 1,
			At: 5 * time.Second}}, lines: 1, streams: 1, edit: quick},
		// Recalled on its way, and then twice as it decodes: that is waste.
		{name: "eviction", jobs: []scenario.Job{{Name: "j", Kind: "gen", Lines: 2,
			At: 5 * time.Second}}, lines: 2, streams: 2,
			evictions: []time.Duration{5*time.Second + 20*time.Millisecond, 6 * time.Second,
				8 * time.Second}, edit: slow},
		// Recalled as it waits for the engine's only place: nothing is lost.
		{name: "eviction-waiting", jobs: []scenario.Job{{Name: "j", Kind: "gen", Lines: 2,
			At: 5 * time.Second}}, lines: 2, streams: 2,
			evictions: []time.Duration{6 * time.Second}, edit: func(s *Setup) {
				slow(s)
				s.Scenario.Pool.MaxSeqs = 1
			}},
		{name: "metrics", jobs: nil, lines: 1, edit: func(s *Setup) {
			m := &s.Scenario.Metrics
			m.Period, m.Jitter, m.Delay, m.Capabilities = 21*time.Second, 0, 500*time.Millisecond,
				50*time.Second
		}},
		{name: "gateway-period", jobs: nil, lines: 1, edit: func(s *Setup) {
			m := &s.Scenario.Metrics
			m.Period, m.GatewayPeriod, m.Jitter = 25*time.Second, 50*time.Second, 0
		}},
		{name: "counters", jobs: nil, lines: 1, edit: func(s *Setup) {
			quick(s)
			s.Scenario.Metrics.Gateway = scenario.GatewayCounters
			s.Scenario.Interactive.SLO.TTFT, s.Scenario.Interactive.SLO.TPOT = 40*time.Millisecond,
				11100*time.Microsecond
		}},
		{name: "faults", jobs: nil, lines: 1, edit: func(s *Setup) {
			m := &s.Scenario.Metrics
			m.Period, m.Jitter = 10*time.Second, 0
			m.Faults = []scenario.MetricsFault{
				{Kind: scenario.Absent, Source: scenario.EngineSource, From: 15 * time.Second,
					To: 35 * time.Second},
				{Kind: scenario.Frozen, Source: scenario.EngineSource, From: 45 * time.Second,
					To: 65 * time.Second},
				{Kind: scenario.Restamped, Source: scenario.GatewaySource, From: 45 * time.Second,
					To: 65 * time.Second},
				{Kind: scenario.Reset, From: 70 * time.Second},
				// there is no such
				{Kind: scenario.Absent, Source: scenario.EngineSource, Replicas: []int{
					1}, From: 0, To: 5 * time.Minute},
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := tiny(t, trace, test.jobs...)
			s.Scenario.Horizon = 150 * time.Second
			test.edit(&s)
			got := record(t, s, test.lines, test.streams, test.evictions...)
			path := filepath.Join("testdata", "signals", test.name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Whatever the faults, no reading is from the future, counters only grow but for
// resets, gaps are of the size that the engine's cost model allows, and the same seed
// gives the same.
func TestSignalsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Setup{Scenario: scenario.Default(), Policy: daemon(), Seed: rapid.Uint64().Draw(
			t, "seed")}
		s.Profile, _ = engine.ProfileNamed("llama-8b-a100")
		s.Scenario.Name, s.Scenario.Horizon = "drawn", 3*time.Minute
		s.Scenario.Interactive.Generator = "conversation"
		s.Scenario.Interactive.Rate = rapid.Float64Range(0.1, 3).Draw(t, "rate")
		s.Scenario.Pool.Profile, s.Scenario.Pool.Replicas = s.Profile.Name,
			rapid.IntRange(1, 3).Draw(t, "replicas")
		s.Scenario.Jobs = []scenario.Job{{Name: "j", Kind: rapid.SampledFrom(
			[]string{"mix", "gen", "score"}).Draw(t, "kind")}}
		m := &s.Scenario.Metrics
		m.Period = rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second,
			30 * time.Second}).Draw(t, "period")
		m.Jitter = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "jitter")
		m.Delay = rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond,
			10 * time.Second}).Draw(t, "delay")
		m.Capabilities = rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(t,
			"capabilities")
		m.Gateway = rapid.SampledFrom([]scenario.Gateway{scenario.GatewayHistogram,
			scenario.GatewayContaminated, scenario.GatewayCounters, scenario.GatewayOff}).Draw(t,
			"gateway")
		m.Engine = rapid.Float64().Draw(t, "engine metrics") < 0.8
		resets, lies := 0, false
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			f := scenario.MetricsFault{
				Kind: rapid.SampledFrom([]scenario.MetricsFaultKind{
					scenario.Absent, scenario.Frozen, scenario.Restamped, scenario.Reset}).Draw(
					t, "fault"),
				Source: rapid.SampledFrom([]scenario.MetricsSource{
					"", scenario.EngineSource, scenario.GatewaySource}).Draw(t, "source"),
				From: time.Duration(rapid.IntRange(0, 170).Draw(t, "from")) * time.Second,
			}
			if f.Source == scenario.EngineSource && !m.Engine {
				f.Source = ""
			}
			lies = lies || f.Kind == scenario.Restamped
			if f.Kind == scenario.Reset {
				resets++
			} else {
				f.To = f.From + time.Duration(rapid.IntRange(1, 60).Draw(t, "for"))*time.Second
			}
			m.Faults = append(m.Faults, f)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}

		var evictions []time.Duration
		for at := range rapid.IntRange(0, 20).Draw(t, "evictions") {
			evictions = append(evictions, time.Duration(at)*7*time.Second)
		}
		streams := rapid.IntRange(0, 4).Draw(t, "streams")
		run := func(check func(time.Time, flowcontrol.Observation)) string {
			var all strings.Builder
			withRecorder(&s, 6, streams, evictions, func(now time.Time, o flowcontrol.Observation) {
				all.WriteString(observationText(now, o))
				check(now, o)
			})
			if _, _, err := simulate(s, true, silent); err != nil {
				t.Fatal(err)
			}
			return all.String()
		}
		last := map[string]*flowcontrol.Reading{}
		shrunk := map[string]int{}
		metered := map[string]bool{} // runners whose metrics were read
		first := run(func(now time.Time, o flowcontrol.Observation) {
			switch o := o.(type) {
			case *flowcontrol.Read:
				checkHistograms(t, o.Reading)
				if o.Reading.Source == flowcontrol.Metrics && !m.Engine {
					t.Fatal("a reading of an engine without metrics")
				}
				r, key := o.Reading, o.Runner+readingText(o.Reading)[:3]
				metered[o.Runner] = metered[o.Runner] || r.Source == flowcontrol.Metrics
				if r.Sampled.After(now.Add(-m.Delay)) {
					t.Fatalf("at %v a reading of %v", now, r.Sampled)
				}
				if before := last[key]; before != nil {
					if r.Sampled.Before(before.Sampled) && !lies {
						t.Fatalf("reading of %v after that of %v", r.Sampled, before.Sampled)
					}
					if decreased(before, r) {
						shrunk[key]++
					}
				}
				last[key] = r
			case *flowcontrol.TokenGaps:
				each := o.Time / time.Duration(o.Gaps)
				if least := time.Duration(s.Profile.CostModel.C0 * 0.9 * float64(
					time.Millisecond)); streams == 0 || each < least || each > time.Second {
					t.Fatalf("%d gaps in %v with %d streams", o.Gaps, o.Time, streams)
				}
				if o.Time > 2*time.Second {
					t.Fatalf("gaps of %v in a second", o.Time)
				}
			case *flowcontrol.FirstToken:
				byMetrics := o.Latency == 0 && metered[o.Runner]
				if !byMetrics && (streams == 0 || o.Latency < 2*s.Scenario.Pool.Network) {
					t.Fatalf("first token after %v with %d streams", o.Latency, streams)
				}
			}
		})
		for key, n := range shrunk {
			if n > resets {
				t.Fatalf("counters of %s shrank %d times, with %d resets", key, n, resets)
			}
		}
		if again := run(func(time.Time, flowcontrol.Observation) {}); again != first {
			t.Fatalf("the same seed gave\n%s\nand\n%s", first, again)
		}
	})
}

// checkHistograms compares histograms with the counters of the same things.
func checkHistograms(t *rapid.T, r *flowcontrol.Reading) {
	count := func(buckets []flowcontrol.Bucket) float64 { return buckets[len(buckets)-1].Count }
	switch r.Source {
	case flowcontrol.Metrics:
		if got := count(r.GapTimes); got != r.TokenGaps {
			t.Fatalf("%v gaps in the histogram, %v counted", got, r.TokenGaps)
		}
		if mean := r.TokenGapTime / r.TokenGaps; mean < 0.01 || mean > 1 {
			t.Fatalf("%v gaps in %v s", r.TokenGaps, r.TokenGapTime)
		}
		fallthrough
	case flowcontrol.Gateway:
		if p, a := count(r.PromptLengths), count(r.AnswerLengths); p != a {
			t.Fatalf("%v prompts and %v answers", p, a)
		}
	case flowcontrol.Capabilities:
		if len(r.GapTimes)+len(r.PromptLengths)+len(r.AnswerLengths) > 0 {
			t.Fatalf("histograms from capabilities: %+v", r)
		}
	}
}

func decreased(before, now *flowcontrol.Reading) bool {
	const rounding = 1e-6 // of interpolated counts
	for _, c := range [][2]float64{
		{before.PromptTokens, now.PromptTokens}, {before.CachedTokens, now.CachedTokens},
		{before.OutputTokens, now.OutputTokens},
		{before.Preemptions, now.Preemptions}, {before.TTFT.Requests, now.TTFT.Requests},
		{before.TTFT.Late, now.TTFT.Late},
		{before.TPOT.Requests, now.TPOT.Requests}, {before.TPOT.Late, now.TPOT.Late},
		{before.TokenGaps, now.TokenGaps}, {before.TokenGapTime, now.TokenGapTime},
	} {
		if c[1] < c[0]-rounding {
			return true
		}
	}
	for _, h := range [][2][]flowcontrol.Bucket{{before.GapTimes, now.GapTimes},
		{before.PromptLengths, now.PromptLengths}, {before.AnswerLengths, now.AnswerLengths}} {
		for i, b := range h[0] {
			if h[1][i].Upper != b.Upper || h[1][i].Count < b.Count {
				return true
			}
		}
	}
	return false
}
