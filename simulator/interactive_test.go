package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

func newTestUsers() *interactiveStats {
	s := scenario.Default()
	s.Horizon = 20 * time.Minute
	return newInteractiveStats(Setup{Scenario: s})
}

func at(d time.Duration) time.Time { return epoch.Add(d) }

// served is a request of 101 tokens of output.
func served(s *interactiveStats, arrived time.Duration, input int, ttft, tpot time.Duration) {
	first := at(arrived + ttft - engine.ServerDelay(1))
	s.finished(&request{arrived: at(arrived), input: input, output: 101}, engine.Completion{
		Output: 101, FirstToken: first, Finished: first.Add(100*tpot - engine.ServerDelay(
			101) + engine.ServerDelay(1)),
	})
}

func TestAttainment(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name       string
		came       time.Duration
		input      int
		ttft, tpot time.Duration
		judged     int
		attained   float64
	}{
		{"good", 5 * time.Minute, 100, 2 * s, 100 * ms, 1, 1},
		{"slow first token", 5 * time.Minute, 100, 2*s + 1, 10 * ms, 1, 0},
		{"slow tokens", 5 * time.Minute, 100, s, 100*ms + 1, 1, 0},
		{"a long prompt may take longer", 5 * time.Minute, 9000, 3 * s, 100 * ms, 1, 1},
		{"but not for ever", 5 * time.Minute, 9000, 3*s + 1, 100 * ms, 1, 0},
		{"first judged", time.Minute, 100, 3 * s, 10 * ms, 1, 0},
		{"too early to judge", time.Minute - 1, 100, 3 * s, 10 * ms, 0, 1},
		{"last judged", 19*time.Minute - 1, 100, 3 * s, 10 * ms, 1, 0},
		{"too late to judge", 19 * time.Minute, 100, 3 * s, 10 * ms, 0, 1},
	} {
		s := newTestUsers()
		served(s, test.came, test.input, test.ttft, test.tpot)
		if r := s.report(); r.Requests != test.judged || r.Attainment != test.attained {
			t.Errorf("%s: %d judged, attainment %v; want %d, %v", test.name, r.Requests,
				r.Attainment, test.judged, test.attained)
		}
	}
}

func TestCutOff(t *testing.T) {
	end := 20 * time.Minute
	for _, test := range []struct {
		name              string
		f                 request
		judged, undecided int
	}{
		{"no token for two minutes", request{arrived: at(18 * time.Minute)}, 1, 0},
		{"tokens in time so far", request{arrived: at(18 * time.Minute),
			first: at(18*time.Minute + time.Second), output: 2000}, 0, 1},
		{"its tokens should all be here", request{arrived: at(18 * time.Minute),
			first: at(18*time.Minute + time.Second), output: 1000}, 1, 0},
		{"first token late", request{arrived: at(18 * time.Minute),
			first: at(18*time.Minute + 3*time.Second), output: 2000}, 1, 0},
		{"came too late to judge", request{arrived: at(19 * time.Minute)}, 0, 0},
	} {
		s := newTestUsers()
		s.endOfRun(&test.f, at(end))
		if r := s.report(); r.Requests != test.judged || r.Undecided != test.undecided ||
			test.judged == 1 && r.Attainment != 0 {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func TestWorstFiveMinutes(t *testing.T) {
	s := newTestUsers()
	for minute := 1; minute < 19; minute++ {
		for i := range 10 {
			tpot := 50 * time.Millisecond
			if (minute == 9 || minute == 12) && i < 5 || minute == 2 && i < 9 {
				tpot = time.Second
			}
			served(s, time.Duration(minute)*time.Minute+time.Duration(i)*time.Second, 100,
				time.Second, tpot)
		}
	}
	r := s.report()
	if r.Requests != 180 || r.Attainment != float64(161)/180 || r.MissedTPOT != 19 {
		t.Errorf("%+v", r)
	}
	// Minutes 8 to 12 are the first five that hold both bad ones.
	if r.Worst5Minutes != 0.80 || r.Worst5MinutesAt != 8*60 {
		t.Errorf("worst five minutes %v from %v s, want 0.8 from 480", r.Worst5Minutes,
			r.Worst5MinutesAt)
	}
	if r.TPOT.P50 != 50 || r.TPOT.P99 != 1000 {
		t.Errorf("TPOT %+v", r.TPOT)
	}
}

func TestAgendaOrder(t *testing.T) {
	var a eventQueue
	var got []int
	rng := random(1)
	const n = 500
	whens := make([]time.Time, n)
	for i := range n {
		whens[i] = at(time.Duration(rng.IntN(50)))
		a.add(whens[i], func() { got = append(got, i) })
	}
	for {
		_, do, ok := a.next(at(time.Hour))
		if !ok {
			break
		}
		do()
	}
	if len(got) != n {
		t.Fatalf("%d of %d happened", len(got), n)
	}
	for i := 1; i < n; i++ {
		if x, y := got[i-1], got[i]; whens[y].Before(whens[x]) || whens[y].Equal(whens[x]) &&
			y < x {
			t.Fatalf("%d at %v came after %d at %v", y, whens[y], x, whens[x])
		}
	}
}
