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

var update = flag.Bool("update", false, "write what happens into testdata/*.txt as what should")

// TestStories plays the scripts in testdata. A line that begins with ">" is something that happens,
// the indented lines below it are what the planner does about it, the rest is comment. The verbs
// are those of story.do.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(t, string(written))
			if *update {
				if err := os.WriteFile(file, []byte(played), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(written), played); diff != "" && !*update {
				t.Errorf("the story goes otherwise (-written +played), -update rewrites it:\n%s",
					diff)
			}
		})
	}
}

// story is a planner in the hands of a script. There is no jitter: pauses are as short as can be.
type story struct {
	*testing.T
	out     strings.Builder
	now     time.Time
	cfg     Config
	deps    Deps
	planner *Planner
	flights map[string]Start
	chunks  int
	wake    time.Time
}

// noJitter is a source of nothing but zeros.
type noJitter struct{}

func (noJitter) Uint64() uint64 { return 0 }

func play(t *testing.T, script string) string {
	s := &story{T: t, now: noon, cfg: DefaultConfig(), flights: map[string]Start{}}
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

// do plays one command: a verb, words, and options as key=value.
func (s *story) do(fields []string) {
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
	case "drain":
		s.step(Drain{})
	case "wait": // wait DURATION, woken as asked for
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
			s.say("%v: %d in flight of %d; why: %q", pool.Models, pool.InFlight, pool.Limit,
				pool.Reason)
			for _, r := range pool.Runners {
				s.say("  %s: %d in flight of %d, breaker open: %v", r.ID, r.InFlight, r.Limit,
					r.Open)
			}
		}
	default: // OUTCOME LINE... [status=] [after=]: requests that ended
		outcome := slices.Index(outcomeNames[:], verb)
		if outcome < 0 {
			s.Fatalf("%q is no verb", verb)
		}
		for _, name := range words[1:] {
			start, flying := s.flights[name]
			if !flying {
				s.Fatalf("%v: %s is not under way", fields, name)
			}
			delete(s.flights, name)
			s.step(&Finished{Start: start, Outcome: Outcome(outcome), Status: number("status"),
				RetryAfter: span("after"), OutputTokens: number("tokens")})
		}
	}
}

func (s *story) key(text string) JobKey {
	batch, model, ok := strings.Cut(text, "/")
	if !ok {
		s.Fatalf("%q is no batch/model", text)
	}
	return JobKey{batch, model}
}

func (s *story) step(ev Event) {
	actions := s.planner.Step(s.now, ev)
	if f, ok := ev.(*Finished); ok {
		verdict := [...]string{Record: "record", Retry: "again", Return: "return"}[actions.Verdict]
		s.say("%s %s", verdict, name(f.Start))
	}
	for _, start := range actions.Start {
		attempt := ""
		if start.Attempt > 1 {
			attempt = fmt.Sprintf(", attempt %d", start.Attempt)
		}
		s.say("start %s on %s%s", name(start), start.Runner, attempt)
		if _, twice := s.flights[name(start)]; twice {
			s.Errorf("%s is under way twice", name(start))
		}
		s.flights[name(start)] = start
	}
	for _, claim := range actions.Claim {
		s.say("claim %s/%s", claim.Key.Batch, claim.Key.Model)
	}
	s.wake = actions.Wake
	if !s.wake.IsZero() && !s.wake.After(s.now) {
		s.Fatalf("wants to be woken at %v, which is over at %v", s.wake.Sub(noon), s.now.Sub(noon))
	}
}

// wait lets time go by. Only wakes that bring something about are told.
func (s *story) wait(d time.Duration) {
	end := s.now.Add(d)
	for !s.wake.IsZero() && !s.wake.After(end) {
		from := s.out.Len()
		s.now = s.wake
		s.step(Tick{})
		if told := s.out.String()[from:]; told != "" {
			before := s.out.String()[:from]
			s.out.Reset()
			fmt.Fprintf(&s.out, "%s\tat %v\n%s", before, s.now.Sub(noon), told)
		}
	}
	s.now = end
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "\t"+format+"\n", args...)
}

// name is BATCH/MODEL:CHUNK.SLOT.
func name(s Start) string { return lineID{s.Key, s.Chunk, s.Slot}.String() }
