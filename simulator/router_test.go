package simulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// routed returns the numbers of the replicas that get the requests of a trace, in order. No two
// arrive at the same time.
func routed(t *testing.T, edit func(*scenario.Pool), trace string) []int {
	t.Helper()
	s := tiny(t, "0,20,5\n")
	read := groupTrace(t, trace)
	s.Trace = read
	s.Scenario.Pool.Replicas = 3
	edit(&s.Scenario.Pool)
	s.Scenario.Horizon = 3 * time.Minute
	sim, err := newSimulation(s, false)
	if err != nil {
		t.Fatal(err)
	}
	var to []int
	for a := range workload.All(read.Arrivals()) {
		sim.run(epoch.Add(a.At))
		to = append(to, sim.lastRouted)
	}
	return to
}

// groupTrace reads a trace whose prompts may belong to groups with the same beginning.
func groupTrace(t *testing.T, rows string) *workload.Trace {
	t.Helper()
	read, err := workload.Read("trace.csv", workload.CSV, strings.NewReader(
		"t_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n"+rows))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestRouters(t *testing.T) {
	// Requests that are answered before the next arrives; and one of 6 s, during which three come.
	const quiet = "0,20,5,,\n1,20,5,,\n2,20,5,,\n3,20,5,,\n170,20,5,,\n"
	const busy = "0,5000,5,,\n1,20,5,,\n2,20,5,,\n3,20,5,,\n170,20,5,,\n"
	// Two groups of prompts.
	const groups = "0,40,5,7,32\n1,40,5,8,32\n2,40,5,7,32\n3,40,5,7,32\n4,40,5,8,32\n170,20,5,,\n"
	for _, test := range []struct {
		name, trace string
		router      scenario.Router
		view        time.Duration
		want        []int
	}{
		{name: "the first of idle ones", router: scenario.LeastWork, trace: quiet,
			want: []int{0, 0, 0, 0, 0}},
		{name: "not where work is", router: scenario.LeastWork, trace: busy,
			want: []int{0, 1, 1, 1, 0}},
		{name: "idle ones in turn", router: scenario.LeastRequests, trace: quiet,
			want: []int{0, 1, 2, 0, 1}},
		{name: "not where a request is", router: scenario.LeastRequests, trace: busy,
			want: []int{0, 1, 2, 1, 2}},
		{name: "where the fewest requests are, whatever the work", router: scenario.LeastRequests,
			trace: "0,5000,5,,\n1,20,2000,,\n2,20,2000,,\n3,20,5,,\n170,20,5,,\n",
			want:  []int{0, 1, 2, 0, 1}},
		{name: "in turn, whatever the work", router: scenario.RoundRobin, trace: busy,
			want: []int{0, 1, 2, 0, 1}},
		// The view of time 0 has no work, and what was sent there since.
		{name: "by an old view", router: scenario.LeastRequests, view: 30 * time.Second,
			trace: quiet, want: []int{0, 1, 2, 0, 1}},
		{name: "by an old view of work", router: scenario.LeastWork, view: 30 * time.Second,
			trace: quiet, want: []int{0, 1, 2, 0, 0}},
		{name: "each group at home", router: scenario.PrefixAffinity, trace: groups,
			want: []int{1, 0, 1, 1, 0, 0}},
		{name: "idle ones in turn", router: scenario.ExpectedLoad, trace: quiet,
			want: []int{0, 1, 2, 0, 1}},
		{name: "not where work is expected", router: scenario.ExpectedLoad, trace: busy,
			want: []int{0, 1, 2, 1, 0}},
		{name: "by what is expected, whatever the requests", router: scenario.ExpectedLoad,
			trace: "0,5000,5,,\n1,20,2000,,\n2,20,2000,,\n3,20,5,,\n170,20,5,,\n",
			want:  []int{0, 1, 2, 1, 0}},
		{name: "each group where it was", router: scenario.ExpectedLoad,
			trace: "0,600,5,7,512\n10,600,5,8,512\n20,600,5,7,512\n30,600,5,8,512\n" +
				"40,600,5,9,512\n50,600,5,7,512\n170,20,5,,\n",
			want: []int{0, 1, 0, 1, 2, 0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := routed(t, func(p *scenario.Pool) {
				p.Router, p.RouterView = test.router, test.view
			}, test.trace)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Prompts of one group go elsewhere once their replica has clearly more work, and return later.
func TestAffinityYieldsToLoad(t *testing.T) {
	trace := ""
	for i := range 6 { // of 3 s each
		trace += fmt.Sprintf("10.%d,2500,5,7,32\n", i)
	}
	got := routed(t, func(p *scenario.Pool) { p.Router = scenario.PrefixAffinity },
		"0,40,5,7,32\n"+trace+"160,40,5,7,32\n170,20,5,,\n")
	home := got[0]
	if got[1] != home || got[7] != home {
		t.Errorf("prompts of one group went to %v, want the same replica while it has little work",
			got)
	}
	if slices.Equal(got[1:7], slices.Repeat([]int{home}, 6)) {
		t.Errorf("all of six long prompts at once went to replica %d", home)
	}
}

// A replica that ends moves only the prompts that were at home there.
func TestAffinityIsStable(t *testing.T) {
	at := func(key uint64, places ...int) (best int) {
		most := uint64(0)
		for _, p := range places {
			r := workload.Request{Input: 100, Prefix: []uint64{1, key}, Segment: 10}
			if w, _ := r.Affinity(p); w > most {
				best, most = p, w
			}
		}
		return best
	}
	counts := map[int]int{}
	for key := range uint64(3000) {
		before := at(key, 0, 1, 2)
		counts[before]++
		if after := at(key, 0, 2); before != 1 && after != before {
			t.Fatalf("key %d moved from %d to %d, when 1 was removed", key, before, after)
		}
	}
	for place := range 3 {
		if counts[place] < 900 {
			t.Errorf("of 3000 prompts place %d has %d, want about a third", place, counts[place])
		}
	}
	if _, ok := (workload.Request{Input: 5}).Affinity(0); ok {
		t.Error("a prompt without a named beginning has a home")
	}
}
