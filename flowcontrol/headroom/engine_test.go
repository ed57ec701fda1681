package headroom_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// engine simulates a runner in steps of a moment: it computes how long an iteration takes from what
// it runs, and reports what a driver would observe. All lines have the same size, and there are
// always more of them.
type engine struct {
	flowcontrol.Controller
	now                     time.Time
	prompt, output          int
	interactive, promptRate float64 // requests that run, prompt tokens a second
	kvTokens                float64 // what the KV cache holds
	objective               float64 // milliseconds a token above which requests are late
	dearer                  float64 // milliseconds that a line costs beyond the cost model
	noMetrics, silent       bool    // no metrics; nothing at all is observed

	lines    []line
	queue    float64 // prompt tokens to compute
	produced float64
	computed float64
	late     flowcontrol.Attainment
	readAt   time.Time
	mean     float64 // iteration of the last moment, milliseconds
	felt     float64 // the same over the last seconds, as a request feels it
	gaps     float64 // not yet reported
}

type line struct{ waits, left float64 } // prompt tokens before its first token, output tokens

func newEngine(t *testing.T, cfg flowcontrol.Config) *engine {
	s := &engine{Controller: newController(t, cfg), now: noon, prompt: 500, output: 200,
		interactive: 15, promptRate: 900, kvTokens: 400_000,
		objective: float64(cfg.SLO.WithUsual().TPOT) / float64(time.Millisecond)}
	s.Observe(s.now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "r"}})
	return s
}

const (
	moment = 250 * time.Millisecond
	// interactiveContext is how many KV tokens an interactive request holds.
	interactiveContext = 1000
)

// run simulates a period.
func (s *engine) run(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.step()
	}
}

// load returns what the runner carries now.
func (s *engine) load() flowcontrol.Load {
	carried := flowcontrol.Load{Runner: "r", InFlight: len(s.lines)}
	for _, l := range s.lines {
		if l.waits > 0 {
			carried.Prefilling += s.prompt
		}
	}
	return carried
}

func (s *engine) report(o flowcontrol.Observation) {
	if _, started := o.(*flowcontrol.Started); started || !s.silent {
		s.Observe(s.now, o)
	}
}

func (s *engine) granted() flowcontrol.RunnerAllowance { return s.Allowance(s.now).Runners[0] }

func (s *engine) step() {
	s.now = s.now.Add(moment)
	ms := float64(moment / time.Millisecond)
	token := testModel.PromptToken(0)
	decoding := testModel.C0 + testModel.C1*(s.interactive+float64(len(s.lines))) +
		testModel.KV*float64(len(s.lines)*600) + s.dearer*float64(len(s.lines))
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
	decodes := slices.ContainsFunc(s.lines, func(l line) bool { return l.waits <= 0 })
	for i := range s.lines {
		if l := &s.lines[i]; l.waits > 0 {
			if l.waits -= prefill; l.waits <= 0 {
				s.report(&flowcontrol.FirstToken{Load: s.load(), PromptTokens: s.prompt,
					Latency: time.Second})
			}
		} else {
			l.left -= iterations
		}
	}
	before := len(s.lines)
	s.lines = slices.DeleteFunc(s.lines, func(l line) bool { return l.left <= 0 })
	for range before - len(s.lines) {
		s.report(&flowcontrol.Answered{Load: s.load(), PromptTokens: s.prompt,
			OutputTokens: s.output, Latency: 20 * time.Second})
	}
	if s.gaps += iterations; !decodes {
		s.gaps = 0 // no line shows them
	} else if s.gaps >= 1 {
		complete := math.Floor(s.gaps)
		s.report(&flowcontrol.TokenGaps{Load: s.load(), Gaps: int(complete),
			Time: time.Duration(float64(moment) * complete / iterations)})
		s.gaps -= complete
	}
	s.felt += (s.mean - s.felt) / 20
	s.late.Requests += 5 * moment.Seconds()
	if s.felt > s.objective {
		s.late.Late += 5 * moment.Seconds()
	}
	if s.now.Sub(s.readAt) >= 5*time.Second {
		s.readAt = s.now
		s.read()
	}
	g := s.granted()
	for g.Evict && len(s.lines) > g.Lines {
		s.lines = s.lines[:len(s.lines)-1]
		s.report(&flowcontrol.Evicted{Load: s.load(), Latency: time.Second})
	}
	for len(s.lines) < g.Lines && int(s.queue) < g.Prompt {
		s.queue += float64(s.prompt)
		s.lines = append(s.lines, line{waits: s.queue, left: float64(s.output)})
		s.report(&flowcontrol.Started{Load: s.load(), PromptTokens: s.prompt,
			OutputTokens: s.output})
		g = s.granted()
	}
}

// read reports what metrics and gateway show.
func (s *engine) read() {
	if s.silent {
		return
	}
	g := flowcontrol.NoReading(flowcontrol.Gateway, s.now)
	g.TPOT, g.TTFT = s.late, flowcontrol.Attainment{Requests: s.late.Requests}
	g.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 0.2}, {Upper: 0.4, Count: s.late.Requests},
		{Upper: 2, Count: s.late.Requests}, {Upper: math.Inf(1), Count: s.late.Requests}}
	s.Observe(s.now, &flowcontrol.Read{Reading: &g})
	if !s.noMetrics {
		r := s.reading()
		s.Observe(s.now, &flowcontrol.Read{Runner: "r", Reading: &r})
	}
}

func (s *engine) reading() flowcontrol.Reading {
	r := flowcontrol.NoReading(flowcontrol.Metrics, s.now)
	r.Running, r.Waiting = s.interactive+float64(len(s.lines)), 0
	held := s.interactive * interactiveContext
	for _, l := range s.lines {
		held += float64(s.prompt+s.output) - l.left
	}
	r.KVTokens, r.KVUsed = s.kvTokens, min(1, held/s.kvTokens)
	r.PromptTokens, r.CachedTokens, r.OutputTokens = s.computed, 0, s.produced
	return r
}

// average returns the mean iteration time over a period, and what it should have been.
func (s *engine) average(t *testing.T, d time.Duration) (got, want float64) {
	iterations, target, n := 0.0, 0.0, 0.0
	for end := s.now.Add(d); s.now.Before(end); n++ {
		s.step()
		iterations += float64(moment/time.Millisecond) / s.mean
		target += s.term(t, "target iteration")
	}
	return n * float64(moment/time.Millisecond) / iterations, target / n
}

// term returns the value that the controller explains by a name.
func (s *engine) term(t *testing.T, name string) float64 {
	t.Helper()
	for _, term := range s.Controller.(flowcontrol.Explainer).Explain(s.now) {
		if term.Name == name {
			return term.Value
		}
	}
	t.Fatalf("no term %q", name)
	return 0
}
