package simulator

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

func TestSameSeedSameBytes(t *testing.T) {
	run := func(seed uint64) string {
		s := bundled(t, "s1-steady.yaml", horizon(10*time.Minute))
		s.Seed = seed
		text, err := json.Marshal(result(t, s))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := run(7)
	for range 2 {
		if again := run(7); again != first {
			t.Fatalf("the same seed gave\n%s\nand\n%s", first, again)
		}
	}
	if run(8) == first {
		t.Error("another seed gave the same")
	}
}

// More lines per replica harvest more and cost more, until the pool collapses.
// This is also what shows that a run can fail: an unlimited cap is the plainest
// fault a policy can have.
func TestFixedCapsOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it judges a policy by hours of simulation")
	}
	unbounded := func(s *Setup) { s.Scenario.Pool.ShedAbove = 0 }
	const noise = 0.1 // points; a batch line also moves interactive requests to other replicas
	harvest, loss := int64(0), 0.0
	for _, lines := range []int{2, 8, 16, 32, 64} {
		r := result(t, bundled(t, "s1-steady.yaml", horizon(15*time.Minute), fixed(lines),
			unbounded))
		t.Logf("%3d lines per replica: %5.2f Mtok, %6.2f points", lines,
			float64(r.Batch.Useful)/1e6, r.Loss)
		if r.Batch.Useful <= harvest || r.Loss < loss-noise {
			t.Errorf("%d lines per replica: %d tokens at %.2f points, after %d at %.2f", lines,
				r.Batch.Useful, r.Loss, harvest, loss)
		}
		if lines <= 8 && r.Loss > 0.5 {
			t.Errorf("%d lines per replica cost %.2f points, want next to nothing", lines, r.Loss)
		}
		harvest, loss = r.Batch.Useful, r.Loss
	}
	if loss < 50 {
		t.Errorf("64 lines per replica cost %.2f points, want a collapse", loss)
	}

	flood := func(edit ...func(*Setup)) Result {
		return result(t, bundled(t, "s1-steady.yaml", append(edit, horizon(15*time.Minute), fixed(
			2000), unbounded)...))
	}
	if r := flood(); r.Loss < 90 || r.Interactive.TTFT.P99 > 10_000 {
		t.Errorf(
			"without a limit the loss is %.2f points, want nearly all; TTFT p99 is %.0f ms, "+
				"though interactive requests go first", r.Loss, r.Interactive.TTFT.P99)
	}
	first := flood(func(s *Setup) { s.Scenario.Pool.Scheduling = engine.FirstCome })
	if first.Interactive.TTFT.P99 < 60_000 ||
		first.Interactive.MissedTTFT < first.Interactive.Requests/2 {
		t.Errorf("behind 2,000 lines in one queue, TTFT p99 is %.0f ms and %d of %d missed it",
			first.Interactive.TTFT.P99, first.Interactive.MissedTTFT, first.Interactive.Requests)
	}
}

func TestPoolTooSmallIsRefused(t *testing.T) {
	s := bundled(t, "s1-steady.yaml", horizon(10*time.Minute), func(s *Setup) {
		s.Scenario.Pool.Replicas = 2
	})
	_, err := Run(s, silent)
	unfit := new(UnfitError)
	if !errors.As(err, &unfit) {
		t.Fatalf("two replicas for the traffic of six: %v", err)
	}
	for _, want := range []string{"S1: without batch work ", "99.00% must",
		"raise pool.replicas (now 2)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

// More replicas are no remedy for an objective that a single request misses.
func TestObjectiveBelowTheEngineIsRefused(t *testing.T) {
	_, err := Run(bundled(t, "s1-steady.yaml", horizon(10*time.Minute), func(s *Setup) {
		s.Scenario.Interactive.SLO.TPOT = 30 * time.Millisecond
	}), silent)
	if err == nil || strings.Contains(err.Error(), "raise pool.replicas") || !strings.Contains(
		err.Error(), "alone on an engine takes 33.1ms per token, so no number of replicas") {
		t.Errorf("30 ms per token where one takes 33.1 ms: %v", err)
	}
}

func TestScenarioWithoutRequestsIsRefused(t *testing.T) {
	_, err := Run(tiny(t, "0,10,10\n299,10,10\n600,1,1\n"), silent)
	if err == nil || !strings.Contains(err.Error(), "nothing to measure") {
		t.Errorf("requests in the first and last minute only: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*Setup)
		want string
	}{
		{"unknown KV", func(s *Setup) { s.Profile.KVTokens = 0 }, "pool.kv_tokens must be given"},
		{"small budget", func(s *Setup) {
			s.Scenario.Pool.MaxBatchedTokens = 4
		}, "max_batched_tokens is 4, want at least max_seqs (8)"},
		{"short trace", func(s *Setup) {
			s.Scenario.Horizon = time.Hour
		}, "horizon is 1h0m0s, but interactive.trace ends after 15m"},
		{"scenario", func(s *Setup) { s.Scenario.Name = "" }, "name is empty"},
	} {
		s := tiny(t, "0,10,10\n300,10,10\n600,10,10\n")
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		test.edit(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestProgressEndsARun(t *testing.T) {
	enough := errors.New("enough")
	last := 0.0
	_, err := Run(tiny(t, "0,10,10\n90,10,10\n600,10,10\n"), func(share float64) error {
		if share <= last || share > 1 {
			t.Errorf("progress goes from %v to %v", last, share)
		}
		if last = share; share > 0.75 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want that of progress", err)
	}
}

// The arithmetic of one request and one line, by hand.
func TestTimesAddUp(t *testing.T) {
	s := tiny(t, "0,1,1\n100,64,11\n600,1,1\n", scenario.Job{Name: "j", Kind: "score",
		At: 200 * time.Second, Lines: 1, Window: time.Minute})
	s.Scenario.Pool.Network = 30 * time.Millisecond
	r := result(t, s)
	// 64 tokens in one iteration, then ten iterations of one token each.
	server := 16 + 0.05
	ttft, tpot := 10+64+server, 11+0.05
	if got := r.NoBatch; got.Requests != 1 || got.TTFT.P50 != ttft || got.TPOT.P99 != tpot ||
		got.Attainment != 1 {
		t.Errorf("one request of 64 tokens: %+v, want TTFT %v and TPOT %v", got, ttft, tpot)
	}
	// 707 tokens: eleven full chunks, one of three, four decoding iterations.
	ms := 5 + 30 + 11*(10+64) + (10 + 3) + 4*11 + (16 + 5*0.05) + 30
	if got := r.Jobs[0]; got.Finished != 200+ms/1000 || got.Outcome != Finished || got.Done != 1 {
		t.Errorf("one scoring line: %+v, want it finished at %v", got, 200+ms/1000)
	}
	if b := r.Batch; b.Input != 707 || b.Output != 5 || b.Useful != 712 || b.Deadlines != 1 ||
		b.Met != 1 {
		t.Errorf("harvest %+v", b)
	}
}

// The planner's inputs before an answer have no field for the answer's length.
func TestPlannerCannotSeeOutputLengths(t *testing.T) {
	var search func(t *testing.T, path string, typ reflect.Type)
	search = func(t *testing.T, path string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			search(t, path, typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				if strings.Contains(strings.ToLower(f.Name), "output") {
					t.Errorf("%s.%s has an output", path, f.Name)
				}
				if f.IsExported() && strings.Contains(f.Type.String(), "plan.") {
					search(t, path+"."+f.Name, f.Type)
				}
			}
		}
	}
	for _, event := range []plan.Event{plan.RunnerUp{}, plan.BatchPut{}, plan.Loaded{},
		plan.Tick{}} {
		search(t, reflect.TypeOf(event).Name(), reflect.TypeOf(event))
	}
}

func BenchmarkS1(b *testing.B) {
	s := bundled(b, "s1-steady.yaml")
	for b.Loop() {
		result(b, s)
	}
}
