package flows_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/scheduler/flows/flowstest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPolicies(t *testing.T) {
	for _, name := range flows.Policies() {
		t.Run(name, func(t *testing.T) { flowstest.TestPolicy(t, name) })
	}
}

func TestStrictKeepsReserves(t *testing.T) {
	strict, err := flows.NewPolicy("strict")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		waiting       [3]int
		running       [3]int
		reserve       [3]float64
		places, limit int
		want          int
	}{
		{"the first class goes first", [3]int{1, 1, 1}, [3]int{0, 5, 0}, [3]float64{}, 10, 10, 0},
		{"then the next", [3]int{0, 1, 1}, [3]int{0, 5, 0}, [3]float64{}, 10, 10, 1},
		{"nothing without a place", [3]int{1, 1, 1}, [3]int{5, 5, 0}, [3]float64{}, 10, 10, -1},
		{"the reserve of a class before stays free", [3]int{0, 1, 0}, [3]int{0, 8, 0},
			[3]float64{0.2, 0, 0}, 10, 10, -1},
		{"it counts what runs of it", [3]int{0, 1, 0}, [3]int{2, 7, 0}, [3]float64{0.2, 0, 0}, 10,
			10, 1},
		{"that of a class after is kept while it waits", [3]int{1, 0, 1}, [3]int{9, 0, 0},
			[3]float64{0, 0, 0.1}, 10, 10, 2},
		{"and not while it does not", [3]int{1, 0, 0}, [3]int{9, 0, 0}, [3]float64{0, 0, 0.1}, 10,
			10, 0},
		{"a limit holds a class", [3]int{0, 1, 0}, [3]int{0, 4, 0}, [3]float64{}, 10, 4, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var classes []flows.Standing
			for i := range 3 {
				classes = append(classes, flows.Standing{Waiting: c.waiting[i],
					Running: c.running[i], Reserve: c.reserve[i], Limit: c.limit})
			}
			if got := strict.Next(c.places, classes); got != c.want {
				t.Errorf("class %d starts, want %d", got, c.want)
			}
		})
	}
}

// Nothing is kept for a class that its limit holds.
func TestStrictKeepsNothingInVain(t *testing.T) {
	strict, err := flows.NewPolicy("strict")
	if err != nil {
		t.Fatal(err)
	}
	classes := []flows.Standing{{Reserve: 0.5, Waiting: 1, Running: 2, Limit: 4},
		{Reserve: 0.5, Waiting: 1, Limit: 1}}
	if got := strict.Next(4, classes); got != 0 {
		t.Errorf("class %d starts, want 0", got)
	}
}

func open(int) int { return 1 << 30 }

// A flow's requests go in the order in which they came, tenants of a use case take turns, and a
// tenant with a larger weight gets more.
func TestTenantsOfAUseCaseShare(t *testing.T) {
	cfg := flows.DefaultConfig()
	cfg.TenantWeights = map[string]float64{"heavy": 4}
	q, err := flows.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	id, of := uint64(0), map[uint64]string{}
	for _, tenant := range []string{"heavy", "light"} {
		for range 100 {
			id++
			of[id] = tenant
			q.Add(noon, flows.Request{ID: id, Flow: flows.Flow{Class: flows.Standard,
				UseCase: "chat", Tenant: tenant}})
		}
	}
	got, last := map[string]int{}, map[string]uint64{}
	for range 100 {
		next, ok := q.Next(noon, 1000, open)
		if !ok {
			t.Fatal("nothing starts")
		}
		if next < last[of[next]] {
			t.Fatalf("request %d starts after %d", next, last[of[next]])
		}
		q.Start(next, 100)
		got[of[next]]++
		last[of[next]] = next
	}
	if got["heavy"] < 78 || got["heavy"] > 82 {
		t.Errorf("of 100 starts: %v, want 80 of the heavy one", got)
	}
}

// Of a full queue the newest request of the longest flow of the last class goes.
func TestFullQueue(t *testing.T) {
	cfg := flows.DefaultConfig()
	cfg.MaxWaiting = 4
	q, err := flows.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	add := func(id uint64, class, tenant string) string {
		return fmt.Sprint(q.Add(noon, flows.Request{ID: id, Flow: flows.Flow{Class: class,
			UseCase: "u", Tenant: tenant}}))
	}
	for _, c := range []struct {
		id            uint64
		class, tenant string
		want          string
	}{
		{1, flows.Standard, "a", "[]"},
		{2, flows.Standard, "a", "[]"},
		{3, flows.Standard, "a", "[]"},
		{4, flows.Flex, "a", "[]"},
		{5, flows.Standard, "a", "[{4 too_many_waiting}]"},
		{6, flows.Standard, "a", "[{6 too_many_waiting}]"},
		{7, flows.Flex, "b", "[{7 too_many_waiting}]"},
		{8, flows.Standard, "b", "[{5 too_many_waiting}]"},
		{9, flows.Critical, "b", "[{3 too_many_waiting}]"},
	} {
		if got := add(c.id, c.class, c.tenant); got != c.want {
			t.Errorf("request %d: %s, want %s", c.id, got, c.want)
		}
	}
	if shed := q.Expire(noon.Add(20 * time.Second)); len(shed) != 3 ||
		shed[0].Why != flows.Waited || q.Waiting() != 1 {
		t.Errorf("after the longest wait: %v, and %d wait", shed, q.Waiting())
	}
}

// waiter is a request that waits in the model of TestFullQueueAgainstAModel.
type waiter struct {
	id     uint64
	class  int
	tenant string
}

// victim returns the request that gives up its place for a new one, found by a walk over all.
func victim(waiting []waiter, came waiter) uint64 {
	last := came.class
	number := map[string]int{} // of the requests of each flow of the last class, with the new one
	for _, w := range waiting {
		last = max(last, w.class)
	}
	for _, w := range append(waiting[:len(waiting):len(waiting)], came) {
		if w.class == last {
			number[w.tenant]++
		}
	}
	longest := ""
	for tenant, n := range number {
		if last == came.class && tenant == came.tenant {
			continue
		}
		if longest == "" || n > number[longest] || n == number[longest] && tenant < longest {
			longest = tenant
		}
	}
	if last == came.class && number[longest] <= number[came.tenant] {
		return came.id
	}
	for _, w := range slices.Backward(waiting) {
		if w.class == last && w.tenant == longest {
			return w.id
		}
	}
	return came.id
}

// Whatever happened before, a full queue sheds what a walk over all its requests would choose.
func TestFullQueueAgainstAModel(t *testing.T) {
	cfg := flows.DefaultConfig()
	cfg.MaxWaiting = 20
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		q, err := flows.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var waiting []waiter // in the order in which they came
		var running []flows.Flow
		flowOf := func(w waiter) flows.Flow {
			return flows.Flow{Class: cfg.Classes[w.class].Name, UseCase: "u", Tenant: w.tenant}
		}
		leave := func(id uint64) {
			waiting = slices.DeleteFunc(waiting, func(w waiter) bool { return w.id == id })
		}
		for id := range uint64(400) {
			switch event := random.IntN(10); {
			case event < 7:
				w := waiter{id, random.IntN(3), fmt.Sprint(random.IntN(8))}
				var want []flows.Shed
				if len(waiting) == cfg.MaxWaiting {
					want = []flows.Shed{{ID: victim(waiting, w), Why: flows.TooMany}}
				}
				waiting = append(waiting, w)
				got := q.Add(noon, flows.Request{ID: id, Flow: flowOf(w)})
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, request %d: shed %v, want %v", seed, id, got, want)
				}
				for _, shed := range want {
					leave(shed.ID)
				}
			case event < 9 && len(waiting) > 0:
				w := waiting[random.IntN(len(waiting))]
				if random.IntN(2) == 0 {
					q.Remove(w.id)
				} else {
					q.Start(w.id, random.Float64())
					running = append(running, flowOf(w))
				}
				leave(w.id)
			case len(running) > 0:
				q.Done(noon, running[0])
				running = running[1:]
			}
			if q.Waiting() != len(waiting) {
				t.Fatalf("seed %d: %d wait, want %d", seed, q.Waiting(), len(waiting))
			}
		}
	}
}

// The shares of a few thousand flows without a request are remembered. A flow with a request is
// never forgotten, however many others come and go.
func TestFlowsInUseAreKept(t *testing.T) {
	q, err := flows.New(flows.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	of := func(tenant any) flows.Flow {
		return flows.Flow{Class: flows.Standard, UseCase: "u", Tenant: fmt.Sprint(tenant)}
	}
	q.Add(noon, flows.Request{ID: 1, Flow: of("runs")})
	q.Start(1, 1)
	q.Add(noon, flows.Request{ID: 2, Flow: of("waits")})
	for id := range uint64(10_000) {
		q.Add(noon, flows.Request{ID: 3 + id, Flow: of(id)})
		q.Remove(3 + id)
	}
	if id, ok := q.Next(noon, 10, open); !ok || id != 2 {
		t.Errorf("request %d starts (%t), want 2", id, ok)
	}
	q.Start(2, 1)
	q.Done(noon, of("runs"))
	q.Done(noon, of("waits"))
	q.Classes(func(name string, waiting, running int) {
		if waiting != 0 || running != 0 {
			t.Errorf("class %s: %d wait and %d run, want none", name, waiting, running)
		}
	})
}

func TestConfigFaults(t *testing.T) {
	cfg := flows.DefaultConfig()
	cfg.Policy, cfg.MaxWaiting = "strickt", 0
	cfg.TenantWeights = map[string]float64{"t": -1}
	cfg.Classes = append(cfg.Classes, flows.ClassConfig{Name: flows.Flex, Reserve: 0.9})
	err := cfg.Validate()
	want := `policy: unknown policy between classes "strickt": did you mean "strict"? there are strict, weighted
classes[3].name: is "flex", must be unique and not empty
classes[3].max_wait: is 0s, must be above 0
classes: their reserves are 1.15 together, at most 1
max_waiting: is 0, must be at least 1
tenant_weights.t: is -1, must be between 0.001 and 1000`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// What is reserved for a class are free places. They do not count against the limit of another,
// which would keep it out although few requests run.
func TestReserveBesideALimit(t *testing.T) {
	strict, err := flows.NewPolicy("strict")
	if err != nil {
		t.Fatal(err)
	}
	classes := []flows.Standing{{Name: flows.Critical, Reserve: 0.2, Running: 3},
		{Name: flows.Standard, Waiting: 1, Running: 5, Limit: 10}}
	if got := strict.Next(100, classes); got != 1 {
		t.Errorf("class %d may start, want the second: 8 run, and its limit is 10", got)
	}
	classes[1].Running = 7
	if got := strict.Next(100, classes); got != -1 {
		t.Errorf("class %d may start at its limit", got)
	}
	classes[1].Limit = 100
	if got := strict.Next(25, classes); got != 1 {
		t.Errorf("class %d may start, want the second: 10 run, and 2 of 25 places are kept", got)
	}
	if got := strict.Next(12, classes); got != 1 {
		t.Errorf("class %d may start, want the second: 10 run on 12 places, none is kept", got)
	}
	if got := strict.Next(10, classes); got != -1 {
		t.Errorf("class %d may start without a place", got)
	}
}
