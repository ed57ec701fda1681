package plan

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt with the actual results")

// TestScenarios runs the scenarios in testdata. A row of text that begins with ">" is a command,
// the indented rows below it are the resulting actions, and other rows are comments. The commands
// are those of scenario.do.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got); diff != "" && !*update {
				t.Errorf("the actions differ (-want +got); -update rewrites the file:\n%s",
					diff)
			}
		})
	}
}

// scenario runs a planner by a script. Pauses have no jitter.
type scenario struct {
	*testing.T
	out      strings.Builder
	now      time.Time
	cfg      Config
	deps     Deps
	planner  *Planner
	requests map[string]Start
	chunks   int
	wake     time.Time
}

// noJitter is a source of zeros.
type noJitter struct{}

func (noJitter) Uint64() uint64 { return 0 }

func runScenario(t *testing.T, script string) string {
	s := &scenario{T: t, now: noon, cfg: DefaultConfig(), requests: map[string]Start{}}
	s.deps = Deps{Scheduler: scheduler.DefaultConfig(), Random: rand.New(noJitter{}),
		Flow: flowcontrol.DefaultConfig().Select(fixed.Name, fixed.DefaultConfig())}
	for line := range strings.Lines(script) {
		command, isCommand := strings.CutPrefix(line, "> ")
		if isCommand || !strings.HasPrefix(line, "\t") {
			s.out.WriteString(line)
		}
		if isCommand {
			s.do(strings.Fields(command))
		}
	}
	return s.out.String()
}

// do runs one command: a verb, words, and options as key=value.
func (s *scenario) do(fields []string) {
	s.Helper()
	options := map[string]string{}
	var words []string
	for _, f := range fields {
		if key, value, ok := strings.Cut(f, "="); ok {
			options[key] = value
		} else {
			words = append(words, f)
		}
	}
	if words[0] != "config" && s.planner == nil {
		s.planner = newPlanner(s, s.cfg, s.deps)
	}
	number := func(key string) int {
		n, err := strconv.Atoi(options[key])
		if err != nil && options[key] != "" {
			s.Fatalf("%v: %v", fields, err)
		}
		return n
	}
	span := func(key string) time.Duration {
		d, err := time.ParseDuration(options[key])
		if err != nil && options[key] != "" {
			s.Fatalf("%v: %v", fields, err)
		}
		return d
	}
	switch verb := words[0]; verb {
	case "config": // per_runner=, per_pool=, look_ahead=, urgency=, quantum=, sheds=
		s.deps.Flow = s.deps.Flow.Select(fixed.Name, fixed.Config{
			PerRunner: number("per_runner"), PerPool: number("per_pool")})
		s.cfg.LookAhead = max(1, number("look_ahead"))
		if options["urgency"] != "" {
			s.deps.Scheduler.Urgency = scheduler.Urgency(options["urgency"])
		}
		if options["sheds"] != "" {
			s.cfg.Retry.Sheds = number("sheds")
		}
		if options["quantum"] != "" {
			s.deps.Scheduler.Quantum = float64(number("quantum"))
		}
	case "up": // up RUNNER MODEL...
		s.step(RunnerUp{Runner: words[1], Models: words[2:]})
	case "gone": // gone RUNNER
		s.step(RunnerGone{Runner: words[1]})
	case "batch":
		// batch ID MODEL... [lines=] [deadline=] [start_by=] [max=] [tenant=] [paused]; without
		// models: a change
		b := Batch{ID: words[1], Tenant: options["tenant"], Created: noon,
			MaxConcurrency: number("max"), Window: span("deadline")}
		if b.Window > 0 {
			b.Deadline = noon.Add(b.Window)
		}
		if by := span("start_by"); by > 0 {
			b.StartBy = noon.Add(by)
		}
		for _, word := range words[2:] {
			if word == "paused" {
				b.Paused = true
				continue
			}
			b.Models = append(b.Models, ModelLines{Model: word, Lines: number("lines")})
		}
		s.step(BatchPut{Batch: b})
	case "end": // end BATCH: no more lines of it
		s.step(BatchGone{Batch: words[1]})
	case "load": // load BATCH/MODEL [lines=] [again=] [last]
		ev := Loaded{Key: s.key(words[1]), Chunk: s.chunks, Wait: span("again"),
			More: !slices.Contains(words, "last")}
		for slot := range number("lines") {
			ev.Lines = append(ev.Lines, Line{Slot: slot, PromptTokens: 100})
		}
		if len(ev.Lines) > 0 {
			s.chunks++
		}
		s.step(ev)
	case "more": // more BATCH/MODEL
		s.step(MoreChunks{Key: s.key(words[1])})
	case "feasibility": // feasibility BATCH [infeasible]
		s.step(Feasibility{Batch: words[1], Infeasible: len(words) > 2})
	case "hold": // hold [REASON]
		s.step(Hold{Reason: Reason(strings.Join(words[1:], ""))})
	case "room": // room BATCH/MODEL [REASON lines=]
		ev := Room{Key: s.key(words[1]), Lines: number("lines")}
		if len(words) > 2 {
			ev.Reason = Reason(words[2])
		}
		s.step(ev)
	case "drain":
		s.step(Drain{})
	case "wait": // wait DURATION, with a Tick at each Wake
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.Fatalf("%v: %v", fields, err)
		}
		s.wait(d)
	case "status": // status BATCH
		status, known := s.planner.Status(s.now, words[1])
		if !known {
			s.say("unknown")
			return
		}
		s.say("%d in flight, %d ready, %d retrying; waiting: %q", status.InFlight, status.Ready,
			status.Retrying, status.Waiting)
	case "pools":
		for _, pool := range s.planner.Pools() {
			s.say("%v: %d in flight of %d; reason: %q", pool.Models, pool.InFlight, pool.Limit,
				pool.Reason)
			for _, r := range pool.Runners {
				s.say("  %s: %d in flight of %d, breaker open: %v", r.ID, r.InFlight, r.Limit,
					r.Open)
			}
		}
	default: // OUTCOME LINE... [status=] [after=] [tokens=]: requests that ended
		outcome := slices.Index(outcomeNames[:], verb)
		if outcome < 0 {
			s.Fatalf("%q is no command", verb)
		}
		for _, name := range words[1:] {
			start, inFlight := s.requests[name]
			if !inFlight {
				s.Fatalf("%v: %s is not in flight", fields, name)
			}
			delete(s.requests, name)
			s.step(&Finished{Start: start, Outcome: Outcome(outcome), Status: number("status"),
				RetryAfter: span("after"), OutputTokens: number("tokens")})
		}
	}
}

func (s *scenario) key(text string) JobKey {
	batch, model, ok := strings.Cut(text, "/")
	if !ok {
		s.Fatalf("%q is no batch/model", text)
	}
	return JobKey{batch, model}
}

func (s *scenario) step(ev Event) {
	actions := s.planner.Step(s.now, ev)
	if f, ok := ev.(*Finished); ok {
		verdict := [...]string{Record: "record", Retry: "retry", Return: "return"}[actions.Verdict]
		s.say("%s %s", verdict, name(f.Start))
	}
	for _, start := range actions.Start {
		attempt := ""
		if start.Attempt > 1 {
			attempt = fmt.Sprintf(", attempt %d", start.Attempt)
		}
		s.say("start %s on %s%s", name(start), start.Runner, attempt)
		if _, twice := s.requests[name(start)]; twice {
			s.Errorf("%s was started twice", name(start))
		}
		s.requests[name(start)] = start
	}
	for _, claim := range actions.Claim {
		s.say("claim %s/%s", claim.Key.Batch, claim.Key.Model)
	}
	s.wake = actions.Wake
	if !s.wake.IsZero() && !s.wake.After(s.now) {
		s.Fatalf("Wake is %v, now is %v", s.wake.Sub(noon), s.now.Sub(noon))
	}
}

// wait lets time pass. It prints only wakes with actions.
func (s *scenario) wait(d time.Duration) {
	end := s.now.Add(d)
	for !s.wake.IsZero() && !s.wake.After(end) {
		from := s.out.Len()
		s.now = s.wake
		s.step(Tick{})
		if output := s.out.String()[from:]; output != "" {
			before := s.out.String()[:from]
			s.out.Reset()
			fmt.Fprintf(&s.out, "%s\tat %v\n%s", before, s.now.Sub(noon), output)
		}
	}
	s.now = end
}

func (s *scenario) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "\t"+format+"\n", args...)
}

// name is BATCH/MODEL:CHUNK.SLOT.
func name(s Start) string { return lineID{s.Key, s.Chunk, s.Slot}.String() }
