package simulator

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// closedLoop is a pool of one engine with users in a closed loop.
func closedLoop(profile string, users scenario.Users) Setup {
	s := Setup{Scenario: scenario.Default(), Policy: daemon(), Seed: 3}
	s.Profile, _ = engine.ProfileNamed(profile)
	s.Scenario.Name, s.Scenario.Horizon = "closed loop", 10*time.Minute
	s.Scenario.Pool.Profile, s.Scenario.Pool.Replicas = profile, 1
	s.Scenario.Interactive.Generator, s.Scenario.Interactive.Users = "conversation", users
	return s
}

// A slower service is asked less, and by each user for the same things in the
// same order.
func TestSlowServiceLowersTheLoadOfAClosedLoop(t *testing.T) {
	run := func(pace float64) (asked [][]workload.Request, served int) {
		s := closedLoop("llama-70b-a100", scenario.Users{})
		s.Scenario.Interactive.Generator = scenario.None
		sim, err := newSimulation(s, false)
		if err != nil {
			t.Fatal(err)
		}
		sim.setup.Scenario.Interactive.Generator = "conversation"
		sim.setup.Scenario.Interactive.Users = scenario.Users{Count: 40, Think: 20 * time.Second}
		people, err := sim.startUsers()
		if err != nil {
			t.Fatal(err)
		}
		asked = make([][]workload.Request, len(people))
		for i, u := range people {
			own := u.stream
			u.stream = workload.Func(func() (workload.Arrival, bool) {
				a, ok := own.Next()
				asked[i] = append(asked[i], a.Request)
				return a, ok
			})
		}
		sim.replicas[0].setPace(pace)
		sim.run(sim.end)
		return asked, sim.interactive.report().Requests
	}
	quick, many := run(1)
	slow, few := run(4)
	if few >= many || few < many/4 {
		t.Errorf("a service four times slower is asked %d times, the other %d times", few, many)
	}
	for i := range quick {
		n := min(len(slow[i]), len(quick[i]))
		if n < 2 || !slices.EqualFunc(slow[i][:n], quick[i][:n], func(a, b workload.Request) bool {
			return a.Input == b.Input && a.Output == b.Output && slices.Equal(a.Prefix, b.Prefix)
		}) {
			t.Fatalf("user %d asks for other things of the slow service, or asks only %d times", i,
				n)
		}
	}
}

// In a burst all users think faster, and as much slower between bursts.
func TestBurstsOfAClosedLoop(t *testing.T) {
	s := closedLoop("llama-70b-h100", scenario.Users{Count: 300, Think: 150 * time.Second})
	s.Scenario.Horizon = time.Hour
	counts := func(bursts scenario.Bursts) (all int, most int) {
		s.Scenario.Interactive.Bursts = bursts
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		sim, err := newSimulation(s, false)
		if err != nil {
			t.Fatal(err)
		}
		for sim.now.Before(sim.end) {
			before := int(sim.lastID)
			sim.run(sim.now.Add(10 * time.Second))
			all, most = int(sim.lastID), max(most, int(sim.lastID)-before)
		}
		return all, most
	}
	calm, maxCalm := counts(scenario.Bursts{})
	all, most := counts(scenario.Bursts{Factor: 20, Length: 15 * time.Second,
		Gap: 3 * time.Minute})
	near(t, "requests with bursts", float64(all), float64(calm), 0.25)
	if most < 2*maxCalm {
		t.Errorf("at most %d requests in ten seconds with bursts, %d without", most, maxCalm)
	}
}

// Users who time out retry and give up, and each request is counted once.
func TestImpatientUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := scenario.Users{
			Count: rapid.IntRange(1, 60).Draw(t, "count"), Think: time.Duration(
				rapid.IntRange(1, 20).Draw(t, "think")) * time.Second,
			Timeout: time.Duration(rapid.IntRange(1, 8).Draw(t, "timeout")) * time.Second,
			Retries: rapid.IntRange(0, 3).Draw(t, "retries"),
			Backoff: time.Duration(rapid.IntRange(0, 5).Draw(t, "backoff")) * time.Second,
		}
		s := closedLoop("llama-8b-a100", users)
		s.Scenario.Pool.MaxSeqs = rapid.SampledFrom([]int{1, 4, 64}).Draw(t, "seqs")
		if rapid.Bool().Draw(t, "loss") {
			s.Scenario.Faults = []scenario.Fault{
				{Kind: scenario.Crash, At: 5 * time.Minute, For: time.Minute,
					Lost: scenario.Missed}}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		sim, _, err := simulate(s, false, silent)
		if err != nil {
			t.Fatal(err)
		}
		r := sim.interactive.report()
		if r.Retries > users.Retries*(r.Requests+r.Undecided+users.Count) || users.Retries == 0 &&
			r.Retries > 0 {
			t.Fatalf("%d retries of %d requests, at most %d of each", r.Retries, r.Requests,
				users.Retries)
		}
		if r.GaveUp > r.MissedTTFT || r.Requests == 0 {
			t.Fatalf("%+v", r)
		}
		waiting := map[*user]int{}
		for _, req := range sim.requests {
			if sim.replicas[0].engine.Has(req.id) && req.user.current == req {
				waiting[req.user]++
			}
		}
		for _, n := range waiting {
			if n > 1 {
				t.Fatalf("a user waits for %d answers at once", n)
			}
		}
	})
	storm := closedLoop("llama-8b-a100", scenario.Users{Count: 50, Think: time.Second,
		Timeout: 2 * time.Second, Retries: 2})
	storm.Scenario.Pool.MaxSeqs = 1
	sim, _, err := simulate(storm, false, silent)
	if err != nil {
		t.Fatal(err)
	}
	if r := sim.interactive.report(); r.Retries < 100 || r.GaveUp < 50 || r.Attainment > 0.5 {
		t.Errorf("fifty users before one place: %+v", r)
	}
}
