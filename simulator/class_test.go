package simulator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Each class has its own SLO, and the total counts each request by its class's SLO.
func TestClassesAreJudgedByTheirOwnPromise(t *testing.T) {
	s := bundled(t, "s1-steady.yaml", horizon(10*time.Minute), fixed(1))
	s.Scenario.Interactive.Classes = []scenario.Class{
		{Name: "agents", Generator: "conversation", Rate: 1,
			SLO: scenario.SLO{TPOT: time.Millisecond}},
		{Name: "people", Generator: "conversation", Users: scenario.Users{Count: 20,
			Think: 20 * time.Second}},
	}
	sim, _, err := simulate(s, false, silent)
	if err != nil {
		t.Fatal(err)
	}
	r := sim.interactive.report()
	if len(r.Classes) != 3 {
		t.Fatalf("%d classes, want 3", len(r.Classes))
	}
	sum, attained := 0, 0.0
	for i, c := range r.Classes {
		if c.Requests < 200 || (c.Attainment < 0.1) != (i == 1) ||
			(c.Attainment > 0.95) != (i != 1) {
			t.Errorf("class %q: %d requests, attainment %v", c.Name, c.Requests, c.Attainment)
		}
		sum += c.Requests
		attained += c.Attainment * float64(c.Requests)
	}
	if sum != r.Requests || attained/float64(sum)-r.Attainment > 1e-9 {
		t.Errorf("classes of %d requests and %v attained, all together %d and %v", sum,
			attained/float64(sum), r.Requests, r.Attainment)
	}

	_, err = Run(s, silent)
	unfit := new(UnfitError)
	if !errors.As(err, &unfit) {
		t.Fatalf("a class that can't attain its SLO: %v", err)
	}
	s.Scenario.Interactive.Classes[0].Rate = 0.01
	s.Scenario.Interactive.Classes[0].SLO.Attainment = 0.97
	if _, err := Run(s, silent); err == nil || !strings.Contains(err.Error(),
		`requests of class "agents"`) {
		t.Errorf("a small class that can't attain its SLO: %v", err)
	}
}

// A trace names the classes of its requests.
func TestClassesOfATrace(t *testing.T) {
	s := tiny(t, "0,10,10\n600,10,10\n")
	s.Scenario.Interactive.Classes = []scenario.Class{
		{Name: "b", SLO: scenario.SLO{TTFT: time.Millisecond}}}
	trace, err := workload.Read("trace.csv", workload.CSV,
		strings.NewReader(
			"t_s,input_tokens,output_tokens,class\n0,1,1,\n100,10,5,a\n110,10,5,b\n120,10,5,\n"+
				"600,1,1,b\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.Trace = trace
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	sim, _, err := simulate(s, false, silent)
	if err != nil {
		t.Fatal(err)
	}
	r := sim.interactive.report()
	if first, b := r.Classes[0], r.Classes[1]; first.Requests != 2 || first.Attainment != 1 ||
		b.Requests != 1 || b.Attainment != 0 {
		t.Errorf("%+v", r.Classes)
	}
}

func TestOverloadIsMarked(t *testing.T) {
	slo := scenario.SLO{TTFT: 2 * time.Second}
	one, two := &replica{name: "replica-0"}, &replica{name: "replica-1"}
	var o overload
	for _, w := range []struct {
		r           *replica
		sent, until time.Duration // seconds
	}{
		{one, 0, 10}, // just in time
		// the gap to the last is less than a minute
		{one, 100, 115}, {two, 100, 111}, {one, 90, 120}, {one, 160, 180},
		{one, 300, 320}, {two, 400, 405}, {nil, 0, 100},
	} {
		o.waited(w.r, at(w.sent*time.Second), at(w.until*time.Second), slo)
	}
	want := []Overload{{"replica-0", 100, 180}, {"replica-1", 110, 111}, {"replica-0", 310, 320}}
	got := o.report()
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}

	flood := bundled(t, "s1-steady.yaml", horizon(10*time.Minute), fixed(2000), func(s *Setup) {
		s.Scenario.Pool.ShedAbove, s.Scenario.Pool.Scheduling = 0, engine.FirstCome
	})
	r := result(t, flood)
	if len(r.NoBatch.Overload) != 0 {
		t.Errorf("overload without batch work: %+v", r.NoBatch.Overload)
	}
	seen := map[string]float64{}
	for _, s := range r.Interactive.Overload {
		seen[s.Replica] += s.To - s.From
	}
	for i := range flood.Scenario.Pool.Replicas {
		if name := "replica-" + string(rune('0'+i)); seen[name] < 300 {
			t.Errorf("2,000 lines on %s put it in overload for %v s of 600", name, seen[name])
		}
	}
}
